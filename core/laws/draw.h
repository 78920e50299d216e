/* draw.h - the parameters of one random layer, ready to act. Used inside core/laws only. */
#ifndef PH_LAWS_DRAW_H
#define PH_LAWS_DRAW_H

#include <stdbool.h>

/* The strict upper triangle that stands for a full A is this much larger. */
#define PH_LAWS_TRIANGLE 1.4142135623730951

#include "base/rng.h"
#include "kernels/kern.h"
#include "laws/laws.h"

/* Everything one worker needs; one block of memory. Matrices (d,d), states (d, inputs): one sample a column. */
typedef struct ph_laws_bench {
  const ph_kern *k;
  double *N, *P;               /* (I + S/2)^{-1} and (I + hR/2)^{-1}, one after the other */
  double *A, *L, *R;           /* as drawn; R after the guard */
  double *B;                   /* port or W */
  double *x, *y, *inj, *other; /* states */
  double *rows;                /* (inputs, d): a state transposed */
  double *norms;               /* (inputs) */
  double *scratch;             /* of the inverse and of two matrices */
  void *block;
  bool guarded; /* the last layer drawn was scaled by the guard */
} ph_laws_bench;

ph_status ph_laws_bench_init(ph_laws_bench *b, const ph_laws_random *c, ph_err *err) PH_MUST_CHECK;
void ph_laws_bench_fini(ph_laws_bench *b);

/* A, L, R, N, P of layer t of stream s. */
ph_status ph_laws_draw_layer(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t,
                             ph_err *err) PH_MUST_CHECK;
/* inj = h B u for all inputs. */
void ph_laws_draw_port(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t);
/* B = W of the standard stream. */
void ph_laws_draw_control(ph_laws_bench *b, const ph_laws_random *c, int64_t s, int64_t t);
/* A start (d, inputs) of the named stream of numbers. */
void ph_laws_draw_start(ph_laws_bench *b, const ph_laws_random *c, const char *name, int64_t s, double *x);
/* b->norms = column norms of x, scaled. */
void ph_laws_norms(ph_laws_bench *b, const ph_laws_random *c, const double *x);

#endif
