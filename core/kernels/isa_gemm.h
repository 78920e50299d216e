/* isa_gemm.h - C = D + bias + A B by register blocks.
 *
 * A block of `mr` rows and `nv` vectors of columns stays in registers while k runs: B rows are loaded as vectors,
 * elements of A broadcast. Every element of C is ((D + bias) + a0 b0) + a1 b1 ..., one multiply-add after the other,
 * whatever the block it falls into, so blocking and width never change bits. Columns go in panels of 1 to PH_NV vectors
 * and one masked vector for the rest; rows of a panel go in blocks of nearly equal height, since short blocks would
 * leave the multiply-add units waiting for their own results.
 */
#ifndef PH_KERNELS_ISA_GEMM_H
#define PH_KERNELS_ISA_GEMM_H

#include "kernels/isa_vec.h"

/* Highest block for a panel of 1..4 vectors: accumulators, B vectors and a broadcast fit 32 or 16 registers. */
#if PH_VB == 64 || defined(__aarch64__)
enum { PH_NV = 4, PH_MR1 = 16, PH_MR2 = 14, PH_MR3 = 9, PH_MR4 = 6 };
#else
enum { PH_NV = 3, PH_MR1 = 12, PH_MR2 = 6, PH_MR3 = 4, PH_MR4 = 1 };
#endif

typedef struct gemm_job {
  int64_t k, ra, ca, ldb, ldd, ldc;
} gemm_job;

/* One block. transposed: ra is 1. n: columns of the last vector (PH_LANES as a constant, or fewer). */
PH_INL void gemm_block(const int mr, const int nv, const int transposed, const int64_t n, const gemm_job *g,
                       const real *A, const real *B, const real *D, const real *bias, real *C) {
  const int64_t k = g->k;
  const int64_t ra = transposed ? 1 : g->ra;
  const int64_t ca = g->ca;
  const int64_t ldb = g->ldb;
  vec c[16][4];
  PH_EACH(i, mr) PH_EACH(j, nv) c[i][j] = D ? ldn(D + i * g->ldd + j * PH_LANES, j < nv - 1 ? PH_LANES : n) : (vec){0};
  if (bias) {
    PH_EACH(j, nv) {
      const vec b = ldn(bias + j * PH_LANES, j < nv - 1 ? PH_LANES : n);
      PH_EACH(i, mr) c[i][j] += b;
    }
  }
  for (int64_t p = 0; p < k; p++, A += ca, B += ldb) {
    vec b[4];
    PH_EACH(j, nv) b[j] = ldn(B + j * PH_LANES, j < nv - 1 ? PH_LANES : n);
    PH_EACH(i, mr) {
      const vec a = bc(A[i * ra]);
      PH_EACH(j, nv) c[i][j] = vfma(a, b[j], c[i][j]);
    }
  }
  PH_EACH(i, mr) PH_EACH(j, nv) stn(C + i * g->ldc + j * PH_LANES, c[i][j], j < nv - 1 ? PH_LANES : n);
}

typedef void gemm_fn(int64_t n, const gemm_job *g, const real *A, const real *B, const real *D, const real *bias,
                     real *C);

/* gemm_<transposed><nv>_<mr>, and gemm_<transposed>0_<mr> for one masked vector */
#define PH_GEMM_FN(t, nv, mr)                                                                                \
  PH_FUN void gemm_##t##nv##_##mr(int64_t n, const gemm_job *g, const real *A, const real *B, const real *D, \
                                  const real *bias, real *C) {                                               \
    if (nv == 0) {                                                                                           \
      gemm_block(mr, 1, t, n, g, A, B, D, bias, C);                                                          \
    } else if (mr <= (nv == 1 ? PH_MR1 : nv == 2 ? PH_MR2 : nv == 3 ? PH_MR3 : PH_MR4) && nv <= PH_NV) {     \
      gemm_block(mr, nv, t, PH_LANES, g, A, B, D, bias, C);                                                  \
    }                                                                                                        \
  }
#define PH_GEMM_6(t, nv, F) F(t, nv, 1) F(t, nv, 2) F(t, nv, 3) F(t, nv, 4) F(t, nv, 5) F(t, nv, 6)
#define PH_GEMM_9(t, nv, F) PH_GEMM_6(t, nv, F) F(t, nv, 7) F(t, nv, 8) F(t, nv, 9)
#define PH_GEMM_16(t, nv, F) \
  PH_GEMM_9(t, nv, F) F(t, nv, 10) F(t, nv, 11) F(t, nv, 12) F(t, nv, 13) F(t, nv, 14) F(t, nv, 15) F(t, nv, 16)
#define PH_GEMM_ALL(t, F) \
  PH_GEMM_16(t, 0, F) PH_GEMM_16(t, 1, F) PH_GEMM_16(t, 2, F) PH_GEMM_9(t, 3, F) PH_GEMM_6(t, 4, F)
PH_GEMM_ALL(0, PH_GEMM_FN)
PH_GEMM_ALL(1, PH_GEMM_FN)

#define PH_GEMM_ROW(t, nv, mr) [t][nv][mr] = gemm_##t##nv##_##mr,
static gemm_fn *const gemm_blocks[2][5][17] = {PH_GEMM_ALL(0, PH_GEMM_ROW) PH_GEMM_ALL(1, PH_GEMM_ROW)};

/* Rows of one panel: blocks of height m/count or one more. nv = 0: one vector of n columns. */
PH_INL void gemm_panel(int nv, int64_t n, int64_t m, const gemm_job *g, const real *A, const real *B, const real *D,
                       const real *bias, real *C) {
  static const int highest[5] = {PH_MR1, PH_MR1, PH_MR2, PH_MR3, PH_MR4};
  const int64_t count = (m + highest[nv] - 1) / highest[nv];
  const int64_t low = m / count;
  const int64_t more = m % count;
  gemm_fn *const *fn = gemm_blocks[g->ra == 1 && g->ca != 1][nv];
  for (int64_t i = 0; i < count; i++) {
    const int64_t mr = low + (i < more);
    fn[mr](n, g, A, B, D, bias, C);
    A += mr * g->ra;
    C += mr * g->ldc;
    if (D) {
      D += mr * g->ldd;
    }
  }
}

PH_FUN void k_gemm(int64_t m, int64_t n, int64_t k, const void *A, int64_t ra, int64_t ca, const void *B, int64_t ldb,
                   const void *D, int64_t ldd, const void *bias, void *C, int64_t ldc) {
  const gemm_job g = {.k = k, .ra = ra, .ca = ca, .ldb = ldb, .ldd = ldd, .ldc = ldc};
  const int64_t vectors = n / PH_LANES;
  const int64_t panels = (vectors + PH_NV - 1) / PH_NV;
  int64_t j = 0;
  if (m < 1) {
    return;
  }
  for (int64_t p = 0; p < panels; p++) {
    const int nv = (int)(vectors / panels + (p < vectors % panels));
    gemm_panel(nv, PH_LANES, m, &g, A, (const real *)B + j, D ? (const real *)D + j : NULL,
               bias ? (const real *)bias + j : NULL, (real *)C + j);
    j += nv * PH_LANES;
  }
  if (j < n) {
    gemm_panel(0, n - j, m, &g, A, (const real *)B + j, D ? (const real *)D + j : NULL,
               bias ? (const real *)bias + j : NULL, (real *)C + j);
  }
}

#endif
