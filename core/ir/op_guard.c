/* op_guard.c - the budget guard: L_eff = s L with s = min(1, sqrt(b / (h lambda_max(L L^T)))), and its gradient.
 *
 * docs/laws.md, section 5. No-op is decided by the cheapest test that is exact: h tr R <= b, then h ||R||_F <= b, then
 * upper bounds ||R^(2^k)||_F^(1/2^k) while R is squared. Squaring also gives, when the guard is active, the projector on
 * the top eigenspace: Pi = lim R^(2^k)/tr, so that lambda = <Pi, R> and V W^T / k = Pi L / sigma without an
 * eigendecomposition; at a repeated lambda_max this is the basis-free element of the set-valued gradient.
 * At h lambda = b (up to rounding) the no-op branch is taken: a convention, the function has a kink there.
 * An L whose products would leave the range of its numbers is divided by a power of two first, so that the budget holds
 * however large L is.
 */
#include <math.h>

#include "ir/op_internal.h"

enum { SQUARINGS = 50 };

typedef struct top {
  bool active;
  double lambda; /* of L L^T over size^2 */
  double size;   /* what L is divided by: a power of two, nearly always 1 */
} top;

static const top INACTIVE = {.size = 1};

/* NaN: L holds something that is not finite, or is too large even so. */
static double size_of(const ph_call *c, const void *L, double square) {
  int64_t n = c->in_shape[0].rows * c->in_shape[0].cols;
  double norm = sqrt(square);
  if (norm <= (c->k->dtype == PH_F32 ? 1e18 : 1e150)) {
    return 1;
  }
  if (!isfinite(norm)) {
    c->k->rownorm(1, n, L, n, &norm);
  }
  int exponent = 0;
  double size = isfinite(norm) ? frexp(norm * (double)c->in_shape[0].cols, &exponent) : NAN;
  return isfinite(size) && exponent < 1024 ? ldexp(1, exponent) : NAN;
}

/* T becomes the projector on the top eigenspace of R over its dimension (trace 1), or the loop ends early because
 * lambda_max is known to be within `limit`. R (d,d) symmetric psd; T, U scratch (d,d). */
static top find_top(const ph_kern *k, int64_t d, const void *R, void *T, void *U, double limit) {
  double scale = k->trace(d, R);
  double log_scale = log(scale); /* R^(2^j) = exp(2^j log_scale) T */
  k->axpby(d, d, 1.0 / scale, R, d, 0.0, NULL, 0, T, d);
  for (int j = 0; j < SQUARINGS; j++) {
    double fro = sqrt(k->sumsq(d * d, T));
    if (exp(log_scale + log(fro) / exp2(j)) <= limit) {
      return INACTIVE;
    }
    k->gemm(d, d, d, T, d, 1, T, d, NULL, 0, NULL, U, d);
    double tr = k->trace(d, U); /* = fro^2: the trace of T T^T */
    k->axpby(d, d, 1.0 / tr, U, d, 0.0, NULL, 0, U, d);
    log_scale += log(tr) / exp2(j + 1);
    k->axpby(d, d, 1.0, U, d, -1.0, T, d, T, d);
    double moved = sqrt(k->sumsq(d * d, T));
    k->axpby(d, d, 1.0, U, d, 0.0, NULL, 0, T, d);
    if (moved <= 4 * k->epsilon) {
      break;
    }
  }
  double lambda = k->dot(d * d, T, R);
  return (top){lambda > limit * (1 + 8 * k->epsilon), lambda, 1};
}

static void divide(const ph_kern *k, int64_t n, void *x, double size) {
  if (size != 1) {
    k->axpby(1, n, 1 / size, x, n, 0.0, NULL, 0, x, n);
  }
}

/* Decides the branch for one L (d,r). scratch: 3 d^2 + d r; on an active return its first d^2 hold the projector. */
static top decide(const ph_call *c, const void *L) {
  int64_t d = c->in_shape[0].rows;
  int64_t r = c->in_shape[0].cols;
  double limit = c->attr[1] / c->attr[0]; /* lambda_max allowed */
  double tr = c->k->sumsq(d * r, L);
  double size = size_of(c, L, tr);
  if (tr <= limit || !isfinite(size)) {
    return INACTIVE;
  }
  void *T = c->scratch;
  void *U = ph_op_scratch(c, d * d);
  void *R = ph_op_scratch(c, 2 * d * d);
  void *Lt = ph_op_scratch(c, 3 * d * d);
  c->k->transpose(d, r, L, r, Lt, d);
  divide(c->k, d * r, Lt, size);
  c->k->gemm(d, d, r, L, r, 1, Lt, d, NULL, 0, NULL, R, d);
  divide(c->k, d * d, R, size);
  limit = limit / size / size;
  if (sqrt(c->k->sumsq(d * d, R)) <= limit) {
    return INACTIVE;
  }
  top t = find_top(c->k, d, R, T, U, limit);
  t.size = size;
  return t;
}

/* s of an active guard. */
static double shrink(const ph_call *c, top t) { return sqrt(c->attr[1] / (c->attr[0] * t.lambda)) / t.size; }

void ph_op_guard(const ph_call *c) {
  int64_t n = c->in_shape[0].rows * c->in_shape[0].cols;
  for (int64_t m = 0; m < c->count; m++) {
    const void *L = ph_op_at_step(c, &c->in[0], m);
    top t = decide(c, L);
    double s = t.active ? shrink(c, t) : 1.0;
    c->k->axpby(1, n, s, L, n, 0.0, NULL, 0, ph_op_at_step(c, &c->out, m), n);
  }
}

/* G_L = s [ G_Leff - (<G_Leff, L> / sigma) (Pi L / sigma) ] with Pi of trace 1. */
static void active_bwd(const ph_call *c, int64_t m, top t) {
  int64_t d = c->in_shape[0].rows;
  int64_t r = c->in_shape[0].cols;
  const void *L = ph_op_at_step(c, &c->in[0], m);
  const void *G = ph_op_at_step(c, &c->gout, m);
  void *g = ph_op_at_step(c, &c->gin[0], m);
  void *PiL = ph_op_scratch(c, 3 * d * d);
  double s = shrink(c, t);
  c->k->gemm(d, r, d, c->scratch, d, 1, L, r, NULL, 0, NULL, PiL, r);
  divide(c->k, d * r, PiL, t.size);
  double coef = -s * (c->k->dot(d * r, G, L) / t.size) / t.lambda;
  c->k->axpby(d, r, s, G, r, coef, PiL, r, PiL, r);
  c->k->axpby(d, r, 1.0, PiL, r, 1.0, c->acc[0] ? g : NULL, c->gin[0].ld, g, c->gin[0].ld);
}

void ph_op_guard_bwd(const ph_call *c) {
  int64_t d = c->in_shape[0].rows;
  int64_t r = c->in_shape[0].cols;
  for (int64_t m = 0; m < c->count; m++) {
    top t = decide(c, ph_op_at_step(c, &c->in[0], m));
    if (t.active) {
      active_bwd(c, m, t);
      continue;
    }
    void *g = ph_op_at_step(c, &c->gin[0], m);
    c->k->axpby(d, r, 1.0, ph_op_at_step(c, &c->gout, m), r, 1.0, c->acc[0] ? g : NULL, c->gin[0].ld, g, c->gin[0].ld);
  }
}
