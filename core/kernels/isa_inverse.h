/* isa_inverse.h - inverses of many matrices with symmetric part >= I by blocked Gauss-Jordan elimination without pivoting.
 *
 * Every Schur complement of such a matrix has symmetric part >= I too (docs/laws.md, 12), so all pivots are >= 1. For each
 * diagonal block of 16: P = its inverse (isa_block.h), R = P times its row panel (P itself in the block), and every other
 * row i gives A_i = A_i - A_ib R with its own block column set to 0 before. The block is 16 for every vector width. Sizes
 * that are not a multiple of 16 are padded with the identity.
 */
#ifndef PH_KERNELS_ISA_INVERSE_H
#define PH_KERNELS_ISA_INVERSE_H

#include "kernels/isa_block.h"
#include "kernels/isa_gemm.h"
#include "kernels/isa_optim.h"
#include "kernels/isa_tile.h"

/* Panels of 16 columns: to = from; and to = - from with zeros left behind. */
PH_INL void copy_panel(int64_t rows, const real *from, int64_t ldf, real *to, int64_t ldt) {
  for (int64_t i = 0; i < rows; i++) {
    PH_EACH(j, PH_NBV) st(to + i * ldt + j * PH_LANES, ld(from + i * ldf + j * PH_LANES));
  }
}

PH_INL void take_panel_negated(int64_t rows, real *from, int64_t ldf, real *to) {
  for (int64_t i = 0; i < rows; i++) {
    PH_EACH(j, PH_NBV) {
      st(to + i * PH_NB + j * PH_LANES, -ld(from + i * ldf + j * PH_LANES));
      st(from + i * ldf + j * PH_LANES, (vec){0});
    }
  }
}

/* Eliminates block b of the n x n matrix a, P the inverse of its diagonal block. panels: 32 n elements. */
PH_FUN void eliminate(int64_t n, real *a, int64_t b, const real *P, real *panels) {
  const int64_t end = b + PH_NB;
  real *column = panels;
  real *row = panels + n * PH_NB;
  real *own = a + b * n;
  real *below = a + end * n;
  take_panel_negated(n, a + b, n, column);
  k_gemm(PH_NB, b, PH_NB, P, PH_NB, 1, own, n, NULL, 0, NULL, row, n);
  k_gemm(PH_NB, n - end, PH_NB, P, PH_NB, 1, own + end, n, NULL, 0, NULL, row + end, n);
  copy_panel(PH_NB, P, PH_NB, row + b, n);
  k_gemm(b, n, PH_NB, column, PH_NB, 1, row, n, a, n, NULL, a, n);
  k_gemm(n - end, n, PH_NB, column + end * PH_NB, PH_NB, 1, row, n, below, n, NULL, below, n);
  for (int64_t i = 0; i < PH_NB * n; i += PH_LANES) {
    st(own + i, ld(row + i));
  }
}

/* count (1 or 2) matrices (n, n), n a multiple of 16, become their inverses. panels: 32 n + 512 elements. */
PH_INL void invert_pair(int count, int64_t n, real *const a[2], real *panels) {
  real *const P[2] = {panels, panels + PH_NB * PH_NB};
  for (int64_t b = 0; b < n; b += PH_NB) {
    invert_blocks(count, n, a, b, P);
    for (int c = 0; c < count; c++) {
      eliminate(n, a[c], b, P[c], panels + 2 * PH_NB * PH_NB);
    }
  }
}

/* to (n, n) = from (d, d), n >= d, with ones added on the diagonal. */
PH_INL void pad_identity(int64_t d, int64_t n, const real *from, real *to) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j += PH_LANES) {
      const int64_t left = i < d ? d - j : 0;
      st(to + i * n + j, left >= PH_LANES ? ld(from + i * d + j)
                         : left > 0       ? ld_part(from + i * d + j, left)
                                          : (vec){0});
    }
    if (i >= d) {
      to[i * n + i] = 1;
    }
  }
}

/* E = I - K X (all (d, d), X with rows n apart); returns max |E|, NaN if there is any. */
PH_INL double residual(int64_t d, int64_t n, const real *K, const real *X, real *E) {
  k_zero(d * d, E);
  for (int64_t i = 0; i < d; i++) {
    E[i * (d + 1)] = -1;
  }
  k_gemm(d, d, d, K, d, 1, X, n, E, d, NULL, E, d);
  k_negate(d * d, E);
  return largest_magnitude(d * d, E);
}

/* One matrix after its elimination: residual, Newton step, result into K. */
PH_INL void finish_inverse(int64_t d, int64_t n, real *K, const real *X, int refine, double *resid, real *E) {
  const double e = residual(d, n, K, X, E);
  if (resid) {
    *resid = e;
  }
  if (refine) {
    k_gemm(d, d, d, X, n, 1, E, d, X, n, NULL, K, d);
  } else {
    k_copy(d, d, X, n, K);
  }
}

/* What becomes of a matrix that was not finite: elimination may leave finite numbers (1/infinity is 0). */
PH_INL void spoil(int64_t d, real *K, double *resid) {
  k_fill_nan(d * d, K);
  if (resid) {
    *resid = NAN;
  }
}

/* Elimination needs no copy when the size is a multiple of the block and K itself is not needed afterwards. */
PH_FUN void inverse_pair(int count, int64_t d, real *const K[2], int refine, double *resid, real *scratch) {
  const int64_t n = (d + PH_NB - 1) / PH_NB * PH_NB;
  const int check = refine || resid;
  const int in_place = n == d && !check;
  real *const copy[2] = {scratch, scratch + n * n};
  real *const *X = in_place ? K : copy;
  real *const E = scratch + 2 * n * n;
  real *const panels = E + n * n;
  int clean[2];
  for (int c = 0; c < count; c++) {
    clean[c] = all_finite(d * d, K[c]);
    if (!in_place) {
      pad_identity(d, n, K[c], X[c]);
    }
  }
  invert_pair(count, n, X, panels);
  for (int c = 0; c < count; c++) {
    if (check) {
      finish_inverse(d, n, K[c], X[c], refine, resid ? resid + c : NULL, E);
    } else if (!in_place) {
      k_copy(d, d, X[c], n, K[c]);
    }
    if (!clean[c]) {
      spoil(d, K[c], resid ? resid + c : NULL);
    }
  }
}

PH_FUN void k_inverse(int64_t count, int64_t d, void *K, int64_t step, int refine, double *resid, void *scratch) {
  if (d < 1) {
    return;
  }
  for (int64_t c = 0; c < count; c += 2) {
    const int pair = count - c > 1;
    real *const at[2] = {(real *)K + c * step, (real *)K + (pair ? c + 1 : c) * step};
    inverse_pair(1 + pair, d, at, refine, resid ? resid + c : NULL, scratch);
  }
}

#endif
