/* isa_block.h - the inverse of a 16 x 16 block by Gauss-Jordan elimination without pivoting, two blocks side by side.
 *
 * Pivot k: row k is divided by the pivot; row i loses a_ik times it. In place, column k would become -a_ik / pivot (and
 * 1 / pivot in row k). Row operations act on each column alike, so that factor can wait: column k stays a_ik (and -1 in
 * row k), and at the end every column is multiplied by its -1 / pivot. The chain from pivot to pivot holds a
 * division, a product and a multiply-add; two blocks hide each other's wait.
 */
#ifndef PH_KERNELS_ISA_BLOCK_H
#define PH_KERNELS_ISA_BLOCK_H

#include "kernels/isa_vec.h"

enum { PH_NB = 16, PH_NBV = PH_NB / PH_LANES };

/* With 32 wide registers the block lives in them and pivots are unrolled; otherwise it lives in the first-level cache. */
#if PH_VB == 64
#define PH_EACH_PIVOT(k, n) PH_EACH(k, n)
#else
#define PH_EACH_PIVOT(k, n) for (int k = 0; k < (n); k++)
#endif

typedef struct block {
  vec r[PH_NB][PH_NBV];
  vec factor[PH_NBV]; /* -1 / pivot of each column */
} block;

/* Element (i, k) in every lane. */
PH_INL vec block_splat(const block *a, int i, int k) {
#if PH_VB == 64 && !defined(__clang__)
  return __builtin_shuffle(a->r[i][k / PH_LANES], ibc(k % PH_LANES));
#else
  return bc(a->r[i][k / PH_LANES][k % PH_LANES]);
#endif
}

/* a*b + c, but a in one lane. */
PH_INL vec vfma_except(int lane, vec a, vec b, vec c) {
#if PH_VB == 64 && PH_DOUBLE
  return (vec)_mm512_mask_fmadd_pd((__m512d)a, (__mmask8) ~(1u << lane), (__m512d)b, (__m512d)c);
#elif PH_VB == 64
  return (vec)_mm512_mask_fmadd_ps((__m512)a, (__mmask16) ~(1u << lane), (__m512)b, (__m512)c);
#else
  return vsel(lane_index() == ibc(lane), a, vfma(a, b, c));
#endif
}

PH_INL void block_pivot(block *a, const int k) {
  const int part = k / PH_LANES;
  const int lane = k % PH_LANES;
  const ivec here = lane_index() == ibc(lane);
  const vec factor = (real)-1 / block_splat(a, k, k);
  vec minus[PH_NBV]; /* - row k / pivot */
  PH_EACH(j, PH_NBV) minus[j] = a->r[k][j] * factor;
  PH_EACH(i, PH_NB) {
    if (i == k) {
      continue;
    }
    const vec s = block_splat(a, i, k);
    PH_EACH(j, PH_NBV) {
      a->r[i][j] = j == part ? vfma_except(lane, s, minus[j], a->r[i][j]) : vfma(s, minus[j], a->r[i][j]);
    }
  }
  PH_EACH(j, PH_NBV) a->r[k][j] = j == part ? vsel(here, bc(-1), -minus[j]) : -minus[j];
  a->factor[part] = vsel(here, factor, a->factor[part]);
}

PH_INL void block_load(block *a, const real *from, int64_t ld_from) {
  PH_EACH(i, PH_NB) PH_EACH(j, PH_NBV) a->r[i][j] = ld(from + i * ld_from + j * PH_LANES);
  PH_EACH(j, PH_NBV) a->factor[j] = (vec){0};
}

PH_INL void block_store(const block *a, real *to) {
  PH_EACH(i, PH_NB) PH_EACH(j, PH_NBV) st(to + i * PH_NB + j * PH_LANES, a->r[i][j] * a->factor[j]);
}

PH_FUN void invert_one(const real *A, int64_t ld_a, real *P) {
  block a;
  block_load(&a, A, ld_a);
  PH_EACH_PIVOT(k, PH_NB) block_pivot(&a, k);
  block_store(&a, P);
}

PH_FUN void invert_two(const real *A, const real *B, int64_t ld_a, real *P, real *Q) {
  block a;
  block b;
  block_load(&a, A, ld_a);
  block_load(&b, B, ld_a);
  PH_EACH_PIVOT(k, PH_NB) {
    block_pivot(&a, k);
    block_pivot(&b, k);
  }
  block_store(&a, P);
  block_store(&b, Q);
}

/* Diagonal block b of one or two matrices with rows ld_a apart: P (16, 16) = its inverse. */
PH_INL void invert_blocks(int count, int64_t ld_a, real *const a[2], int64_t b, real *const P[2]) {
  const int64_t at = b * ld_a + b;
  if (count == 2) {
    invert_two(a[0] + at, a[1] + at, ld_a, P[0], P[1]);
  } else {
    invert_one(a[0] + at, ld_a, P[0]);
  }
}

#endif
