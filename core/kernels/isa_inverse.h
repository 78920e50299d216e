/* isa_inverse.h - inverses of many matrices with symmetric part >= I by blocked Gauss-Jordan elimination without pivoting.
 *
 * Every Schur complement of such a matrix has symmetric part >= I too (docs/laws.md, 12), so all pivots are >= 1. For each
 * diagonal block of 16: P = its inverse, R = P times its row panel (P itself in the block), and every other row i gives
 * A_i = A_i - A_ib R with its own block column set to 0 before. The block is 16 for every vector width. Sizes that are not
 * a multiple of 16 are padded with the identity. The pivot chain is a chain of divisions; two matrices run through it
 * side by side.
 */
#ifndef PH_KERNELS_ISA_INVERSE_H
#define PH_KERNELS_ISA_INVERSE_H

#include "kernels/isa_gemm.h"
#include "kernels/isa_optim.h"

enum { PH_NB = 16, PH_NBV = PH_NB / PH_LANES };

/* One pivot of the block a (16 x 16): the pivot row times 1/pivot, then out of every other row. */
PH_INL void pivot_step(real *a, int k)
{
  real *row = a + k * PH_NB;
  const real p = (real)1 / row[k];
  vec r[PH_NBV];
  row[k] = 1;
  PH_UNROLL for (int j = 0; j < PH_NBV; j++)
  {
    r[j] = p * ld(row + j * PH_LANES);
    st(row + j * PH_LANES, r[j]);
  }
  PH_UNROLL for (int i = 0; i < PH_NB; i++)
  {
    if (i == k) continue;
    const real f = -a[i * PH_NB + k];
    a[i * PH_NB + k] = 0;
    PH_UNROLL for (int j = 0; j < PH_NBV; j++) st(a + i * PH_NB + j * PH_LANES, vfma(bc(f), r[j], ld(a + i * PH_NB + j * PH_LANES)));
  }
}

/* Block b of one or two matrices: P = - inverse of the diagonal block. */
PH_FUN void invert_blocks(int count, int64_t ld_a, real *const a[2], int64_t b, real *const P[2])
{
  for (int c = 0; c < count; c++)
    for (int i = 0; i < PH_NB; i++)
      for (int j = 0; j < PH_NBV; j++) st(P[c] + i * PH_NB + j * PH_LANES, ld(a[c] + (b + i) * ld_a + b + j * PH_LANES));
  for (int k = 0; k < PH_NB; k++)
    for (int c = 0; c < count; c++) pivot_step(P[c], k);
  for (int c = 0; c < count; c++)
    for (int i = 0; i < PH_NB * PH_NB; i += PH_LANES) st(P[c] + i, -ld(P[c] + i));
}

/* Eliminates block b of the n x n matrix a, with P = - inverse of its diagonal block. panels: 32 n elements. */
PH_FUN void eliminate(int64_t n, real *a, int64_t b, const real *P, real *panels)
{
  real *column = panels, *row = panels + n * PH_NB;
  for (int64_t i = 0; i < n; i++)
    for (int j = 0; j < PH_NBV; j++) {
      st(column + i * PH_NB + j * PH_LANES, ld(a + i * n + b + j * PH_LANES));
      st(a + i * n + b + j * PH_LANES, (vec){0});
    }
  k_gemm(PH_NB, n, PH_NB, P, PH_NB, 1, a + b * n, n, NULL, 0, NULL, row, n);
  for (int i = 0; i < PH_NB; i++)
    for (int j = 0; j < PH_NBV; j++) st(row + i * n + b + j * PH_LANES, ld(P + i * PH_NB + j * PH_LANES));
  k_gemm(b, n, PH_NB, column, PH_NB, 1, row, n, a, n, NULL, a, n);
  real *below = a + (b + PH_NB) * n;
  k_gemm(n - b - PH_NB, n, PH_NB, column + (b + PH_NB) * PH_NB, PH_NB, 1, row, n, below, n, NULL, below, n);
  for (int64_t i = 0; i < PH_NB * n; i += PH_LANES) st(a + b * n + i, -ld(row + i));
}

/* a (n, n), n a multiple of 16, becomes its inverse. panels: 32 n + 512 elements. */
PH_INL void invert_pair(int count, int64_t n, real *const a[2], real *panels)
{
  real *const P[2] = {panels, panels + PH_NB * PH_NB};
  for (int64_t b = 0; b < n; b += PH_NB) {
    invert_blocks(count, n, a, b, P);
    for (int c = 0; c < count; c++) eliminate(n, a[c], b, P[c], panels + 2 * PH_NB * PH_NB);
  }
}

/* to (n, n) = from (d, d) with ones added on the diagonal. */
PH_INL void pad_identity(int64_t d, int64_t n, const real *from, real *to)
{
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) to[i * n + j] = i < d && j < d ? from[i * d + j] : (real)(i == j);
}

/* E (d, d) = I - K X, X with rows n apart; returns max |E|, NaN if there is any. */
PH_INL double residual(int64_t d, int64_t n, const real *K, const real *X, real *E)
{
  k_gemm(d, d, d, K, d, 1, X, n, NULL, 0, NULL, E, d);
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++) E[i * d + j] = (real)(i == j) - E[i * d + j];
  return largest_magnitude(d * d, E);
}

/* One matrix after its elimination: residual, Newton step, result into K. */
PH_INL void finish_inverse(int64_t d, int64_t n, real *K, const real *X, int refine, double *resid, real *E)
{
  if (refine || resid) {
    const double e = residual(d, n, K, X, E);
    if (resid) *resid = e;
  }
  if (refine) {
    k_gemm(d, d, d, X, n, 1, E, d, X, n, NULL, K, d);
    return;
  }
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++) K[i * d + j] = X[i * n + j];
}

PH_FUN void inverse_pair(int count, int64_t d, real *const K[2], int refine, double *resid, real *scratch)
{
  const int64_t n = (d + PH_NB - 1) / PH_NB * PH_NB;
  real *const X[2] = {scratch, scratch + n * n};
  real *const E = scratch + 2 * n * n, *const panels = E + n * n;
  int clean[2];
  for (int c = 0; c < count; c++) {
    clean[c] = all_finite(d * d, K[c]);
    pad_identity(d, n, K[c], X[c]);
  }
  invert_pair(count, n, X, panels);
  for (int c = 0; c < count; c++) {
    finish_inverse(d, n, K[c], X[c], refine, resid ? resid + c : NULL, E);
    for (int64_t i = 0; i < d * d && !clean[c]; i++) K[c][i] = (real)NAN;
  }
}

PH_FUN void k_inverse(int64_t count, int64_t d, void *K, int64_t step, int refine, double *resid, void *scratch)
{
  if (d < 1) return;
  for (int64_t c = 0; c < count; c += 2) {
    real *const pair[2] = {(real *)K + c * step, (real *)K + (c + 1) * step};
    inverse_pair(count - c < 2 ? 1 : 2, d, pair, refine, resid ? resid + c : NULL, scratch);
  }
}

#endif
