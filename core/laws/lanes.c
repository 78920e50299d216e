/* lanes.c - conservation of eight streams side by side, for one input a stream and widths that are a multiple of 4. */
#include "laws/lanes.h"

#include <math.h>

#include "base/la.h"
#include "base/mem.h"
#include "laws/draw.h"
#include "laws/gauss.h"
#include "laws/isa.h"
#include "laws/walk.h"

#define DECLARE(isa) extern const ph_laws_lanes ph_laws_lanes_##isa;
PH_LAWS_ISA(DECLARE)

const ph_laws_lanes *ph_laws_lanes_get(void) {
#define CHOOSE(isa) PH_LAWS_CHOOSE(&ph_laws_lanes_, isa)
  PH_LAWS_ISA(CHOOSE)
  return &ph_laws_lanes_portable;
}

bool ph_laws_lanes_fit(const ph_laws_random *c) { return c->inputs == 1 && c->width % 4 == 0 && c->width <= 64; }

/* Room of one group: three matrices, R in the place of A once the transport is done. */
typedef struct group {
  const ph_laws_lanes *k;
  double *A, *L, *K, *x, *u, *inj;
} group;

static void draw(const ph_laws_random *c, const char *name, double scale, int64_t s, int64_t t, double *x) {
  uint64_t mm = (uint64_t)(c->width * c->width);
  ph_laws_gauss8(ph_rng_of(c->seed, name), (uint64_t)(s * c->depth + t) * mm / 2, (uint64_t)c->depth * mm / 2, scale,
                 (int64_t)mm / 2, x);
}

/* Largest eigenvalue of lane `lane` of R, by LAPACK; K is scratch. */
static ph_status top_eigenvalue(const ph_laws_random *c, const double *R, int lane, double *K, double *top,
                                ph_err *err) {
  int64_t d = c->width;
  for (int64_t i = 0; i < d * d; i++) {
    K[i] = R[8 * i + lane];
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
  for (int lane = 0; lane < 8; lane++) {
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
  double trace[8];
  double square[8];
  double half[8];
  double *R = g->A;
  int64_t n = d * (d - 1) / 2;
  ph_laws_gauss8(ph_rng_of(c->seed, "laws.A"), (uint64_t)((s * c->depth + t) * n) / 2, (uint64_t)(c->depth * n) / 2,
                 c->transport * PH_LAWS_TRIANGLE, n / 2, g->A);
  draw(c, "laws.L", c->damping, s, t, g->L);
  g->k->transport(d, g->A, g->K, g->x);
  g->k->gram(d, g->L, R, trace, square);
  ph_status st = guard(c, g, R, trace, square, lanes, half, guarded, err);
  if (st) {
    return st;
  }
  g->k->damp(d, R, half, g->K, g->x);
  draw(c, "laws.B", c->step * c->port, s, t, g->L);
  ph_laws_gauss8(ph_rng_of(c->seed, "laws.u"), (uint64_t)((s * c->depth + t) * d) / 2, (uint64_t)(c->depth * d) / 2, 1,
                 d / 2, g->u);
  g->k->port(d, g->L, g->u, g->inj);
  return PH_OK;
}

static ph_status walk(const ph_laws_random *c, group *g, int64_t s, double *norm, double *bound, int64_t *guarded,
                      ph_err *err) {
  int64_t d = c->width;
  int64_t width = c->depth + 1;
  int lanes = c->streams - s < 8 ? (int)(c->streams - s) : 8;
  double now[8];
  double port[8];
  ph_laws_gauss8(ph_rng_of(c->seed, "laws.x0"), (uint64_t)(s * d) / 2, (uint64_t)d / 2, 1, d / 2, g->x);
  g->k->norm(d, g->x, now);
  for (int lane = 0; lane < lanes; lane++) {
    norm[(s + lane) * width] = bound[(s + lane) * width] = now[lane];
  }
  for (int64_t t = 0; t < c->depth; t++) {
    ph_status st = layer(c, g, s, t, lanes, guarded, err);
    if (st) {
      return st;
    }
    g->k->norm(d, g->inj, port);
    g->k->add(d, g->inj, g->x);
    g->k->norm(d, g->x, now);
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
  size_t mm = 8 * (size_t)(c->width * c->width);
  size_t state = 8 * (size_t)c->width;
  double *block = ph_mem_new(3 * mm + 3 * state, sizeof *block);
  if (!block) {
    return ph_err_set(err, PH_E_NOMEM, "random streams: no memory for a group of eight");
  }
  group g = {.k = ph_laws_lanes_get(), .A = block, .L = block + mm, .K = block + 2 * mm, .x = block + 3 * mm};
  g.u = g.x + state;
  g.inj = g.u + state;
  ph_status st = walk(c, &g, s, norm, bound, guarded, err);
  ph_mem_free(block);
  return st;
}
