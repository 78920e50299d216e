/* walk.c - conservation of eight streams side by side, for one input a stream and widths that are a multiple of 4. */
#include "laws/walk.h"

#include <math.h>

#include "base/la.h"
#include "base/mem.h"
#include "laws/draw.h"

bool ph_laws_lanes_fit(const ph_laws_random *c) {
  return c->inputs == 1 && c->width % 4 == 0 && c->width <= PH_ABREAST_WIDTH;
}

/* Room of one group: three matrices, R in the place of A once the transport is done. */
typedef struct group {
  const ph_kern *k;
  double *A, *L, *K, *x, *u, *inj;
} group;

/* The `n` numbers of layer t of streams s .. s+7. */
static void draw(const group *g, const ph_laws_random *c, const char *name, double scale, int64_t s, int64_t t,
                 int64_t n, double *x) {
  g->k->normal8(ph_rng_of(c->seed, name), (uint64_t)((s * c->depth + t) * n) / 2, (uint64_t)(c->depth * n) / 2, scale,
                n / 2, x);
}

/* Largest eigenvalue of lane `lane` of R, by LAPACK; K is scratch. */
static ph_status top_eigenvalue(const ph_laws_random *c, const double *R, int lane, double *K, double *top,
                                ph_err *err) {
  int64_t d = c->width;
  for (int64_t i = 0; i < d * d; i++) {
    K[i] = R[PH_ABREAST * i + lane];
  }
  ph_status st = ph_la_eigh((int)d, K, K + d * d, NULL, err);
  if (!st) {
    *top = K[d * d + d - 1];
  }
  return st;
}

/* half[l] = h s/2 with s the exact guard's scale of lane l (docs/laws.md, 5), cheapest test first. */
static ph_status guard(const ph_laws_random *c, const group *g, const double *R, const double *trace,
                       const double *square, int lanes, double *half, int64_t *guarded, ph_err *err) {
  for (int lane = 0; lane < PH_ABREAST; lane++) {
    half[lane] = c->step / 2;
    if (lane >= lanes || c->budget == 0 || c->step * trace[lane] <= c->budget ||
        c->step * sqrt(square[lane]) <= c->budget) {
      continue;
    }
    double top = 0;
    ph_status st = top_eigenvalue(c, R, lane, g->K, &top, err);
    if (st) {
      return st;
    }
    if (c->step * top > c->budget) {
      half[lane] = c->budget / top / 2;
      ++*guarded;
    }
  }
  return PH_OK;
}

static ph_status layer(const ph_laws_random *c, group *g, int64_t s, int64_t t, int lanes, int64_t *guarded,
                       ph_err *err) {
  int64_t d = c->width;
  double trace[PH_ABREAST];
  double square[PH_ABREAST];
  double half[PH_ABREAST];
  double *R = g->A;
  draw(g, c, "laws.A", c->transport * PH_LAWS_TRIANGLE, s, t, d * (d - 1) / 2, g->A);
  draw(g, c, "laws.L", c->damping, s, t, d * d, g->L);
  g->k->cayley8(d, g->A, g->K, g->x);
  g->k->gram8(d, g->L, R, trace, square);
  ph_status st = guard(c, g, R, trace, square, lanes, half, guarded, err);
  if (st) {
    return st;
  }
  g->k->damp8(d, R, half, g->K, g->x);
  draw(g, c, "laws.B", c->step * c->port, s, t, d * d, g->L);
  draw(g, c, "laws.u", 1, s, t, d, g->u);
  g->k->gemv8(d, g->L, g->u, g->inj);
  return PH_OK;
}

static ph_status walk(const ph_laws_random *c, group *g, int64_t s, double *norm, double *bound, int64_t *guarded,
                      ph_err *err) {
  int64_t d = c->width;
  int64_t width = c->depth + 1;
  int lanes = c->streams - s < PH_ABREAST ? (int)(c->streams - s) : PH_ABREAST;
  double now[PH_ABREAST];
  double port[PH_ABREAST];
  g->k->normal8(ph_rng_of(c->seed, "laws.x0"), (uint64_t)(s * d) / 2, (uint64_t)d / 2, 1, d / 2, g->x);
  g->k->norm8(d, g->x, now);
  for (int lane = 0; lane < lanes; lane++) {
    norm[(s + lane) * width] = bound[(s + lane) * width] = now[lane];
  }
  for (int64_t t = 0; t < c->depth; t++) {
    ph_status st = layer(c, g, s, t, lanes, guarded, err);
    if (st) {
      return st;
    }
    g->k->norm8(d, g->inj, port);
    g->k->axpby(1, PH_ABREAST * d, 1, g->x, 0, 1, g->inj, 0, g->x, 0);
    g->k->norm8(d, g->x, now);
    for (int lane = 0; lane < lanes; lane++) {
      int64_t at = (s + lane) * width + t + 1;
      norm[at] = now[lane];
      bound[at] = bound[at - 1] + port[lane];
    }
  }
  return PH_OK;
}

ph_status ph_laws_lanes_walk(const ph_laws_random *c, int64_t s, double *norm, double *bound, int64_t *guarded,
                             ph_err *err) {
  size_t mm = PH_ABREAST * (size_t)(c->width * c->width);
  size_t state = PH_ABREAST * (size_t)c->width;
  double *block = ph_mem_new(3 * mm + 3 * state, sizeof *block);
  if (!block) {
    return ph_err_set(err, PH_E_NOMEM, "random streams: no memory for a group of eight");
  }
  group g = {.k = ph_kern_get(PH_F64), .A = block, .L = block + mm, .K = block + 2 * mm, .x = block + 3 * mm};
  g.u = g.x + state;
  g.inj = g.u + state;
  ph_status st = walk(c, &g, s, norm, bound, guarded, err);
  ph_mem_free(block);
  return st;
}
