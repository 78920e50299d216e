/* isa_cholesky.h - A = L L^T of symmetric positive definite matrices, and its adjoint.
 *
 * U = L^T row by row: u_kk = sqrt(a_kk), u_kj = a_kj / u_kk, a_ij -= u_ki u_kj. The matrix is kept with its sign turned, so every
 * update is an addition; blocks of 16 rows whatever the vector, what is below a block changes by products of matrices. Adjoint
 * (docs/laws.md, 12): G_A = (S + S^T)/2, S = L^{-T} Phi(L^T G) L^{-1}, Phi: the lower triangle with half the diagonal.
 */
#ifndef PH_KERNELS_ISA_CHOLESKY_H
#define PH_KERNELS_ISA_CHOLESKY_H

#include "kernels/isa_lu.h"

/* z (d, d) = a (x + x^T). */
PH_INL void symmetric_part(int64_t d, real a, const real *x, real *z) {
  k_transpose(d, d, x, d, z, d);
  k_axpby(1, d * d, a, x, d * d, a, z, d * d, z, d * d);
}

/* Row k of a block that starts at row and column b: its pivot, and what it takes from the block's other rows. */
PH_INL int cholesky_row(int64_t n, real *a, int64_t b, int64_t k) {
  real *own = a + k * n;
  if (!(own[k] < 0)) {
    return 0;
  }
  const real pivot = (real)__builtin_sqrt(-own[k]);
  for (int64_t j = b; j < n; j += PH_LANES) {
    st(own + j, ld(own + j) / -pivot);
  }
  own[k] = pivot;
  for (int64_t i = k + 1; i < b + PH_NB; i++) {
    const vec f = bc(own[i]);
    for (int64_t j = b; j < n; j += PH_LANES) {
      st(a + i * n + j, vfma(f, ld(own + j), ld(a + i * n + j)));
    }
  }
  return 1;
}

/* a (n, n) holds - A and gets U in its upper triangle; n a multiple of 16. Returns 0 when a pivot is not positive. */
PH_FUN int cholesky_upper(int64_t n, real *a) {
  for (int64_t b = 0; b < n; b += PH_NB) {
    for (int64_t k = b; k < b + PH_NB; k++) {
      if (!cholesky_row(n, a, b, k)) {
        return 0;
      }
    }
    for (int64_t i = b + PH_NB; i < n; i += PH_NB) {
      real *own = a + i * n + i;
      k_gemm(PH_NB, n - i, PH_NB, a + b * n + i, 1, n, a + b * n + i, n, own, n, NULL, own, n);
    }
  }
  return 1;
}

/* scratch: (n, n) and (d, d). */
PH_INL int cholesky_one(int64_t d, const real *A, real *L, real *scratch) {
  const int64_t n = PH_ROUND_16(d);
  real *a = scratch;
  real *negated = scratch + n * n;
  if (!all_finite(d * d, A)) {
    return 0;
  }
  symmetric_part(d, (real)-0.5, A, negated);
  pad_identity(d, n, negated, a);
  for (int64_t i = d; i < n; i++) {
    a[i * n + i] = -1;
  }
  const int definite = cholesky_upper(n, a);
  k_transpose(d, d, a, n, L, d);
  for (int64_t i = 0; i < d; i++) {
    k_zero(d - 1 - i, L + i * d + i + 1);
  }
  return definite && all_finite(d * d, L);
}

PH_FUN void k_cholesky(int64_t count, int64_t d, const void *A, int64_t stepa, void *L, int64_t stepl, void *scratch) {
  for (int64_t c = 0; c < count && d > 0; c++) {
    real *l = (real *)L + c * stepl;
    if (!cholesky_one(d, (const real *)A + c * stepa, l, scratch)) {
      k_fill_nan(d * d, l);
    }
  }
}

PH_INL void lower_half(int64_t d, real *p) {
  for (int64_t i = 0; i < d; i++) {
    p[i * d + i] *= (real)0.5;
    k_zero(d - 1 - i, p + i * d + i + 1);
  }
}

/* S^T = U^{-1} (U^{-1} P)^T with U = L^T, P = Phi(L^T G). */
PH_FUN void k_cholesky_bwd(int64_t count, int64_t d, const void *L, int64_t stepl, const void *G, int64_t stepg,
                           void *GA, int64_t stepga, int acc, void *scratch) {
  real *u = scratch;
  real *p = u + d * d;
  real *q = p + d * d;
  for (int64_t c = 0; c < count && d > 0; c++) {
    const real *l = (const real *)L + c * stepl;
    real *ga = (real *)GA + c * stepga;
    k_transpose(d, d, l, d, u, d);
    k_gemm(d, d, d, u, d, 1, (const real *)G + c * stepg, d, NULL, 0, NULL, p, d);
    lower_half(d, p);
    back_substitute(d, d, u, d, p, d);
    k_transpose(d, d, p, d, q, d);
    back_substitute(d, d, u, d, q, d);
    symmetric_part(d, (real)0.5, q, p);
    k_axpby(1, d * d, 1, p, d * d, 1, acc ? ga : NULL, d * d, ga, d * d);
  }
}

#endif
