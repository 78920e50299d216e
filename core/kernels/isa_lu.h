/* isa_lu.h - X = A^{-1} B for any square A: LU elimination with partial pivoting on [A | B], then back substitution.
 *
 * The pivot of a column is its largest magnitude on or below the diagonal, of equals the one in the topmost row. Panels of 16 columns
 * whatever the vector; what is right of a panel changes by one product of matrices, in the order of the rank-1 updates it stands
 * for, so the block shows in the speed and not in the bits. L is kept with its sign turned: every update is an addition. A is
 * padded with the identity and B with zeros to multiples of 16.
 */
#ifndef PH_KERNELS_ISA_LU_H
#define PH_KERNELS_ISA_LU_H

#include <string.h>

#include "kernels/isa_inverse.h"

/* Row in k..n-1 whose element of column k is the largest; the first of equals. */
PH_INL int64_t pivot_row(int64_t n, const real *a, int64_t ld_a, int64_t k) {
  int64_t best = k;
  for (int64_t i = k + 1; i < n; i++) {
    if (__builtin_fabs(a[i * ld_a + k]) > __builtin_fabs(a[best * ld_a + k])) {
      best = i;
    }
  }
  return best;
}

/* cols is a multiple of 16. */
PH_INL void swap_rows(int64_t cols, real *x, real *y) {
  for (int64_t j = 0; j < cols; j += PH_LANES) {
    const vec t = ld(x + j);
    st(x + j, ld(y + j));
    st(y + j, t);
  }
}

/* Rows below k lose their element of column k: in the panel that starts at column b, rows i += f_i row k with f_i = - a_ik / a_kk,
 * which is kept in place of a_ik. */
PH_INL void eliminate_column(int64_t n, real *a, int64_t ld_a, int64_t b, int64_t k) {
  const real *own = a + k * ld_a + b;
  vec right[PH_NBV]; /* row k, zero up to column k */
  PH_EACH(j, PH_NBV) {
    right[j] = (vec)((ivec)ld(own + j * PH_LANES) & (lane_index() + j * PH_LANES > ibc((ireal)(k - b))));
  }
  for (int64_t i = k + 1; i < n; i++) {
    real *row = a + i * ld_a + b;
    const real f = -row[k - b] / own[k - b];
    PH_EACH(j, PH_NBV) { st(row + j * PH_LANES, vfma(bc(f), right[j], ld(row + j * PH_LANES))); }
    row[k - b] = f;
  }
}

/* Rows x_i += sum over k < i of f_ik x_k, i = 0..15: what the eliminations of a panel do to the columns right of it. */
PH_INL void follow_panel(int64_t cols, const real *f, real *x, int64_t ld_x) {
  for (int64_t j = 0; j < cols; j += PH_LANES) {
    for (int64_t i = 1; i < PH_NB; i++) {
      vec s = ld(x + i * ld_x + j);
      for (int64_t k = 0; k < i; k++) {
        s = vfma(bc(f[i * ld_x + k]), ld(x + k * ld_x + j), s);
      }
      st(x + i * ld_x + j, s);
    }
  }
}

/* a (n, cols) -> U in the upper triangle of its first n columns, and the right columns as the eliminations leave them. Returns 0 when a
 * pivot is zero or not a number. n, cols: multiples of 16. */
PH_FUN int eliminate_pivoted(int64_t n, int64_t cols, real *a) {
  for (int64_t b = 0; b < n; b += PH_NB) {
    const int64_t end = b + PH_NB;
    real *own = a + b * cols;
    real *below = a + end * cols;
    for (int64_t k = b; k < end; k++) {
      const int64_t p = pivot_row(n, a, cols, k);
      if (p != k) {
        swap_rows(cols, a + k * cols, a + p * cols);
      }
      if (!(__builtin_fabs(a[k * cols + k]) > 0)) {
        return 0;
      }
      eliminate_column(n, a, cols, b, k);
    }
    follow_panel(cols - end, own + b, own + end, cols);
    k_gemm(n - end, cols - end, PH_NB, below + b, cols, 1, own + end, cols, below + end, cols, NULL, below + end, cols);
  }
  return 1;
}

/* Rows x_i = (x_i - sum over k > i of u_ik x_k) / u_ii of n <= 16 rows, given as - x_i. */
PH_INL void substitute_block(int64_t n, int64_t cols, const real *u, int64_t ld_u, real *x, int64_t ld_x) {
  for (int64_t j = 0; j < cols; j += PH_LANES) {
    const int64_t left = cols - j < PH_LANES ? cols - j : PH_LANES;
    for (int64_t i = n - 1; i >= 0; i--) {
      vec s = ldn(x + i * ld_x + j, left);
      for (int64_t k = i + 1; k < n; k++) {
        s = vfma(bc(u[i * ld_u + k]), ldn(x + k * ld_x + j, left), s);
      }
      stn(x + i * ld_x + j, s / -u[i * ld_u + i], left);
    }
  }
}

/* x (n, cols) = U^{-1} x, U upper triangular (what lies below its diagonal is not read). */
PH_FUN void back_substitute(int64_t n, int64_t cols, const real *u, int64_t ld_u, real *x, int64_t ld_x) {
  for (int64_t b = (n - 1) / PH_NB * PH_NB; b >= 0; b -= PH_NB) {
    const int64_t rows = n - b < PH_NB ? n - b : PH_NB;
    const int64_t end = b + rows;
    real *own = x + b * ld_x;
    for (int64_t i = 0; i < rows; i++) {
      k_negate(cols, own + i * ld_x);
    }
    k_gemm(rows, cols, n - end, u + b * ld_u + end, ld_u, 1, x + end * ld_x, ld_x, own, ld_x, NULL, own, ld_x);
    substitute_block(rows, cols, u + b * ld_u + b, ld_u, own, ld_x);
  }
}

/* to (n, ld_to) = [A | B] padded with the identity and zeros; B NULL: the identity. */
PH_INL void augment(int64_t d, int64_t m, int64_t n, const real *A, const real *B, real *to, int64_t ld_to) {
  k_zero(n * ld_to, to);
  for (int64_t i = 0; i < n; i++) {
    real *row = to + i * ld_to;
    if (i >= d) {
      row[i] = 1;
      continue;
    }
    memcpy(row, A + i * d, (size_t)d * sizeof(real));
    if (B) {
      memcpy(row + n, B + i * m, (size_t)m * sizeof(real));
    } else {
      row[n + i] = 1;
    }
  }
}

PH_FUN void k_solve(int64_t count, int64_t d, int64_t m, const void *A, int64_t stepa, const void *B, int64_t stepb,
                    void *X, int64_t stepx, void *scratch) {
  const int64_t n = PH_ROUND_16(d);
  const int64_t cols = n + PH_ROUND_16(m);
  real *work = scratch;
  for (int64_t c = 0; c < count && d > 0 && m > 0; c++) {
    const real *a = (const real *)A + c * stepa;
    const real *b = B ? (const real *)B + c * stepb : NULL;
    real *x = (real *)X + c * stepx;
    const int clean = all_finite(d * d, a) && (!b || all_finite(d * m, b));
    augment(d, m, n, a, b, work, cols);
    if (clean && eliminate_pivoted(n, cols, work)) {
      back_substitute(n, cols - n, work, cols, work + n, cols);
      k_copy(d, m, work + n, cols, x);
    } else {
      k_fill_nan(d * m, x);
    }
    if (!all_finite(d * m, x)) {
      k_fill_nan(d * m, x);
    }
  }
}

#endif
