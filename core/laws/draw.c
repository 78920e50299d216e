/* draw.c - one random layer: numbers, Gram matrix, exact guard, the two inverses. */
#include "laws/draw.h"

#include <math.h>
#include <string.h>

#include "base/la.h"
#include "base/mem.h"

ph_status ph_laws_check(const ph_laws_random *c, ph_err *err) {
  const struct {
    const char *name;
    double value, least, most;
  } field[] = {
      {"streams", (double)c->streams, 1, 1e7}, {"inputs", (double)c->inputs, 1, 1e6},
      {"depth", (double)c->depth, 1, 1e6},     {"width", (double)c->width, 1, 1024},
      {"step", c->step, 1e-300, 1e300},        {"transport", c->transport, 0, 1e150},
      {"damping", c->damping, 0, 1e150},       {"port", c->port, 0, 1e150},
      {"control", c->control, 0, 1e150},       {"budget", c->budget, 0, 1e150},
  };
  for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
    if (!(field[i].value >= field[i].least && field[i].value <= field[i].most)) {
      return ph_err_set(err, PH_E_ARG, "random streams: %s = %g is outside %g .. %g", field[i].name, field[i].value,
                        field[i].least, field[i].most);
    }
  }
  double results = (double)c->streams * (double)c->inputs * ((double)c->depth + 1);
  if (results > 1e9) {
    return ph_err_set(err, PH_E_ARG, "random streams: %g norms are too many (at most 1e9)", results);
  }
  return PH_OK;
}

ph_status ph_laws_bench_init(ph_laws_bench *b, const ph_laws_random *c, ph_err *err) {
  size_t d = (size_t)c->width;
  size_t n = (size_t)c->inputs;
  size_t mm = d * d;
  size_t state = d * n;
  size_t scratch = (size_t)PH_INV_SCRATCH(c->width) + 2 * mm;
  double *p = ph_mem_new(6 * mm + 5 * state + n + scratch, sizeof(double));
  if (!p) {
    return ph_err_set(err, PH_E_NOMEM, "random streams: no memory for a worker of width %zu", d);
  }
  *b = (ph_laws_bench){.k = ph_kern_get(PH_F64), .block = p};
  double **part[] = {&b->N, &b->P,   &b->A,     &b->L,    &b->R,     &b->B,      &b->x,
                     &b->y, &b->inj, &b->other, &b->rows, &b->norms, &b->scratch};
  for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
    *part[i] = p;
    p += i < 6 ? mm : i < 11 ? state : i == 11 ? n : scratch;
  }
  return PH_OK;
}

void ph_laws_bench_fini(ph_laws_bench *b) {
  ph_mem_free(b->block);
  b->block = NULL;
}

static void draw_matrix(const ph_laws_bench *b, const ph_laws_random *c, const char *name, double scale, int64_t s,
                        int64_t t, double *x) {
  uint64_t mm = (uint64_t)(c->width * c->width);
  b->k->normal(ph_rng_of(c->seed, name), (uint64_t)(s * c->depth + t) * mm, scale, (int64_t)mm, x);
}

/* b->A: zero but for the strict upper triangle. */
static void draw_triangle(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t) {
  int64_t d = c->width;
  int64_t n = d * (d - 1) / 2;
  b->k->normal(ph_rng_of(c->seed, "laws.A"), (uint64_t)((s * c->depth + t) * n), c->transport * PH_LAWS_TRIANGLE, n,
               b->scratch);
  memset(b->A, 0, (size_t)(d * d) * sizeof *b->A);
  const double *next = b->scratch;
  for (int64_t i = 0; i < d - 1; i++) {
    memcpy(b->A + i * d + i + 1, next, (size_t)(d - 1 - i) * sizeof *next);
    next += d - 1 - i;
  }
}

/* The exact guard, cheapest test first (docs/laws.md, 5): h tr R, then h ||R||_F, then the eigenvalue. */
static ph_status apply_guard(ph_laws_bench *b, const ph_laws_random *c, ph_err *err) {
  int64_t d = c->width;
  b->guarded = false;
  if (c->budget == 0 || c->step * b->k->sumsq(d * d, b->L) <= c->budget ||
      c->step * sqrt(b->k->sumsq(d * d, b->R)) <= c->budget) {
    return PH_OK;
  }
  ph_status st = ph_la_eigh((int)d, b->R, b->scratch, NULL, err);
  if (st) {
    return st;
  }
  double top = c->step * b->scratch[d - 1];
  if (top > c->budget) {
    b->k->axpby(d, d, c->budget / top, b->R, d, 0, NULL, 0, b->R, d);
    b->guarded = true;
  }
  return PH_OK;
}

/* K = I + a X */
static void shifted(const ph_laws_bench *b, int64_t d, double a, const double *X, double *K) {
  b->k->axpby(d, d, a, X, d, 0, NULL, 0, K, d);
  for (int64_t i = 0; i < d; i++) {
    K[i * d + i] += 1;
  }
}

ph_status ph_laws_draw_layer(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t, ph_err *err) {
  int64_t d = c->width;
  draw_triangle(b, c, s, t);
  draw_matrix(b, c, "laws.L", c->damping, s, t, b->L);
  b->k->transpose(d, d, b->L, d, b->scratch, d);
  b->k->gemm(d, d, d, b->L, d, 1, b->scratch, d, NULL, 0, NULL, b->R, d);
  ph_status st = apply_guard(b, c, err);
  if (st) {
    return st;
  }
  b->k->skew(1, d, b->A, 0, b->scratch, 0);
  shifted(b, d, 0.5, b->scratch, b->N);
  shifted(b, d, 0.5 * c->step, b->R, b->P);
  b->k->inverse(2, d, b->N, d * d, 0, NULL, b->scratch);
  return PH_OK;
}

void ph_laws_draw_port(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t) {
  int64_t d = c->width;
  int64_t n = c->inputs;
  draw_matrix(b, c, "laws.B", c->step * c->port, s, t, b->B);
  b->k->normal(ph_rng_of(c->seed, "laws.u"), (uint64_t)((s * c->depth + t) * n * d), 1, n * d, b->rows);
  b->k->transpose(n, d, b->rows, d, b->other, n);
  b->k->gemm(d, n, d, b->B, d, 1, b->other, n, NULL, 0, NULL, b->inj, n);
}

void ph_laws_draw_control(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t) {
  draw_matrix(b, c, "laws.W", c->control, s, t, b->B);
}

void ph_laws_draw_start(ph_laws_bench *b, const ph_laws_random *c, const char *name, int64_t s, double *x) {
  int64_t d = c->width;
  int64_t n = c->inputs;
  b->k->normal(ph_rng_of(c->seed, name), (uint64_t)(s * n * d), 1, n * d, b->rows);
  b->k->transpose(n, d, b->rows, d, x, n);
}

void ph_laws_norms(ph_laws_bench *b, const ph_laws_random *c, const double *x) {
  b->k->transpose(c->width, c->inputs, x, c->inputs, b->rows, c->width);
  b->k->rownorm(c->inputs, c->width, b->rows, c->width, b->norms);
}
