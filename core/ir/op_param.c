/* op_param.c - ops on parameter matrices: skew, Gram, Cayley, damping, products; forward and adjoint.
 *
 * Equations are those of docs/laws.md (sections 1 and 4): N = (I + S/2)^{-1}, C = 2N - I, G_S = -N^T G_C N^T;
 * P = (I + hR/2)^{-1}, Lam = 2P - I, G_R = -h P G_Lam P; R = L L^T, G_L = (G_R + G_R^T) L.
 * The adjoints recover N = (I + C)/2 and P = (I + Lam)/2 from the outputs, so only C and Lam are kept.
 */
#include <math.h>

#include "ir/op_internal.h"
#include "ir/pivoted.h"

/* gin[i] of matrix m receives `value` (d rows, n cols, contiguous), added or written. */
static void deliver(const ph_call *c, int i, int64_t m, int64_t rows, int64_t cols, double a, const void *value) {
  void *g = ph_op_at_step(c, &c->gin[i], m);
  c->k->axpby(rows, cols, a, value, cols, 1.0, c->acc[i] ? g : NULL, c->gin[i].ld, g, c->gin[i].ld);
}

/* y = a x + b I for a square contiguous matrix. */
static void affine_identity(const ph_kern *k, int64_t d, double a, const void *x, int64_t ldx, double b, void *y) {
  k->axpby(d, d, a, x, ldx, 0.0, NULL, 0, y, d);
  k->add_diagonal(d, b, y);
}

/* ---- skew ---- */

void ph_op_skew(const ph_call *c) {
  c->k->skew(c->count, c->out_shape.rows, c->in[0].p, c->in[0].step, c->out.p, c->out.step);
}

void ph_op_skew_bwd(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  for (int64_t m = 0; m < c->count; m++) {
    c->k->skew(1, d, ph_op_at_step(c, &c->gout, m), 0, c->scratch, 0);
    deliver(c, 0, m, d, d, 1.0, c->scratch);
  }
}

/* ---- gram ---- */

void ph_op_gram(const ph_call *c) {
  int64_t d = c->in_shape[0].rows;
  int64_t r = c->in_shape[0].cols;
  for (int64_t m = 0; m < c->count; m++) {
    const void *L = ph_op_at_step(c, &c->in[0], m);
    c->k->transpose(d, r, L, r, c->scratch, d);
    c->k->gemm(d, d, r, L, r, 1, c->scratch, d, NULL, 0, NULL, ph_op_at_step(c, &c->out, m), d);
  }
}

void ph_op_gram_bwd(const ph_call *c) {
  int64_t d = c->in_shape[0].rows;
  int64_t r = c->in_shape[0].cols;
  for (int64_t m = 0; m < c->count; m++) {
    const void *G = ph_op_at_step(c, &c->gout, m);
    void *H = c->scratch;
    c->k->transpose(d, d, G, d, H, d);
    c->k->axpby(d, d, 1.0, G, d, 1.0, H, d, H, d);
    void *g = ph_op_at_step(c, &c->gin[0], m);
    c->k->gemm(d, r, d, H, d, 1, ph_op_at_step(c, &c->in[0], m), r, c->acc[0] ? g : NULL, c->gin[0].ld, NULL, g,
               c->gin[0].ld);
  }
}

/* ---- cayley ---- */

/* Above `refine` the unpivoted inverse takes a Newton step, above `pivot` (or when the step finds a large residual) the
 * pivoted long-double path takes over: element growth is of the order of ||S||_F (docs/laws.md, 12). In narrow odd matrices
 * it all falls on the zero mode, and the bound on C^T C - I, which grows like sqrt(d), is at its smallest: they do both
 * ten times earlier, which costs little at their size. */
typedef struct limits {
  double refine, pivot;
} limits;

static limits inverse_limits(ph_dtype dtype, int64_t d) {
  const double narrow = d < 16 ? 0.1 : 1;
  return dtype == PH_F32 ? (limits){narrow * 10, narrow * 300} : (limits){narrow * 30, narrow * 1e4};
}

static void inverse_checked(const ph_call *c, const void *S, int64_t d, double norm, void *K) {
  limits lim = inverse_limits(c->k->dtype, d);
  double resid = 0;
  if (norm <= lim.pivot) {
    affine_identity(c->k, d, 0.5, S, d, 1.0, K);
    c->k->inverse(1, d, K, 0, 1, &resid, c->scratch);
  }
  if (norm > lim.pivot || !(resid <= 0.05)) {
    affine_identity(c->k, d, 0.5, S, d, 1.0, K);
    ph_inverse_pivoted(c->k->dtype, d, K);
  }
}

void ph_op_cayley(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  limits lim = inverse_limits(c->k->dtype, d);
  for (int64_t m = 0; m < c->count; m++) {
    affine_identity(c->k, d, 0.5, ph_op_at_step(c, &c->in[0], m), d, 1.0, ph_op_at_step(c, &c->out, m));
  }
  c->k->inverse(c->count, d, c->out.p, c->out.step, 0, NULL, c->scratch);
  for (int64_t m = 0; m < c->count; m++) {
    const void *S = ph_op_at_step(c, &c->in[0], m);
    void *C = ph_op_at_step(c, &c->out, m);
    double norm = sqrt(c->k->sumsq(d * d, S));
    if (!isfinite(norm)) { /* of a finite S that is too large for elimination without pivots, the squares overflow */
      c->k->rownorm(1, d * d, S, d * d, &norm);
    }
    if (norm > lim.refine && isfinite(norm)) {
      inverse_checked(c, S, d, norm, C);
    }
    affine_identity(c->k, d, 2.0, C, d, -1.0, C);
  }
}

void ph_op_cayley_bwd(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  void *N = c->scratch;
  void *Nt = ph_op_scratch(c, d * d);
  void *T = ph_op_scratch(c, 2 * d * d);
  for (int64_t m = 0; m < c->count; m++) {
    affine_identity(c->k, d, -0.5, ph_op_at_step(c, &c->out, m), d, -0.5, N);             /* -N */
    c->k->transpose(d, d, N, d, Nt, d);                                                   /* -N^T */
    c->k->gemm(d, d, d, ph_op_at_step(c, &c->gout, m), d, 1, Nt, d, NULL, 0, NULL, T, d); /* -G N^T */
    void *g = ph_op_at_step(c, &c->gin[0], m);
    c->k->axpby(d, d, -1.0, Nt, d, 0.0, NULL, 0, Nt, d); /* N^T */
    c->k->gemm(d, d, d, Nt, d, 1, T, d, c->acc[0] ? g : NULL, c->gin[0].ld, NULL, g, c->gin[0].ld);
  }
}

/* ---- damping ---- */

void ph_op_damping(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  for (int64_t m = 0; m < c->count; m++) {
    affine_identity(c->k, d, 0.5 * c->attr[0], ph_op_at_step(c, &c->in[0], m), d, 1.0, ph_op_at_step(c, &c->out, m));
  }
  c->k->inverse(c->count, d, c->out.p, c->out.step, 0, NULL, c->scratch);
  for (int64_t m = 0; m < c->count; m++) {
    void *Lam = ph_op_at_step(c, &c->out, m);
    affine_identity(c->k, d, 2.0, Lam, d, -1.0, Lam);
  }
}

void ph_op_damping_bwd(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  void *P = c->scratch;
  void *T = ph_op_scratch(c, d * d);
  for (int64_t m = 0; m < c->count; m++) {
    affine_identity(c->k, d, 0.5, ph_op_at_step(c, &c->out, m), d, 0.5, P);
    c->k->gemm(d, d, d, ph_op_at_step(c, &c->gout, m), d, 1, P, d, NULL, 0, NULL, T, d); /* G P */
    c->k->axpby(d, d, -c->attr[0], P, d, 0.0, NULL, 0, P, d);                            /* -h P */
    void *g = ph_op_at_step(c, &c->gin[0], m);
    c->k->gemm(d, d, d, P, d, 1, T, d, c->acc[0] ? g : NULL, c->gin[0].ld, NULL, g, c->gin[0].ld);
  }
}

/* ---- matmul, transpose ---- */

void ph_op_matmul(const ph_call *c) {
  int64_t m = c->in_shape[0].rows;
  int64_t k = c->in_shape[0].cols;
  int64_t n = c->in_shape[1].cols;
  for (int64_t i = 0; i < c->count; i++) {
    c->k->gemm(m, n, k, ph_op_at_step(c, &c->in[0], i), k, 1, ph_op_at_step(c, &c->in[1], i), n, NULL, 0, NULL,
               ph_op_at_step(c, &c->out, i), n);
  }
}

void ph_op_matmul_bwd(const ph_call *c) {
  int64_t m = c->in_shape[0].rows;
  int64_t k = c->in_shape[0].cols;
  int64_t n = c->in_shape[1].cols;
  for (int64_t i = 0; i < c->count; i++) {
    const void *A = ph_op_at_step(c, &c->in[0], i);
    const void *B = ph_op_at_step(c, &c->in[1], i);
    const void *G = ph_op_at_step(c, &c->gout, i);
    if (c->gin[0].p) { /* G B^T */
      void *g = ph_op_at_step(c, &c->gin[0], i);
      c->k->transpose(k, n, B, n, c->scratch, k);
      c->k->gemm(m, k, n, G, n, 1, c->scratch, k, c->acc[0] ? g : NULL, c->gin[0].ld, NULL, g, c->gin[0].ld);
    }
    if (c->gin[1].p) { /* A^T G */
      void *g = ph_op_at_step(c, &c->gin[1], i);
      c->k->gemm(k, n, m, A, 1, k, G, n, c->acc[1] ? g : NULL, c->gin[1].ld, NULL, g, c->gin[1].ld);
    }
  }
}

void ph_op_transpose(const ph_call *c) {
  int64_t m = c->in_shape[0].rows;
  int64_t n = c->in_shape[0].cols;
  for (int64_t i = 0; i < c->count; i++) {
    c->k->transpose(m, n, ph_op_at_step(c, &c->in[0], i), n, ph_op_at_step(c, &c->out, i), m);
  }
}

void ph_op_transpose_bwd(const ph_call *c) {
  int64_t m = c->in_shape[0].rows;
  int64_t n = c->in_shape[0].cols;
  for (int64_t i = 0; i < c->count; i++) {
    c->k->transpose(n, m, ph_op_at_step(c, &c->gout, i), m, c->scratch, n);
    deliver(c, 0, i, m, n, 1.0, c->scratch);
  }
}
