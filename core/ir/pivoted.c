/* pivoted.c - see pivoted.h. */
#include "ir/pivoted.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static void load(ph_dtype dtype, int64_t n, const void *x, long double *y) {
  for (int64_t i = 0; i < n; i++) {
    y[i] = dtype == PH_F32 ? ((const float *)x)[i] : ((const double *)x)[i];
  }
}

static void store(ph_dtype dtype, int64_t n, const long double *x, void *y) {
  for (int64_t i = 0; i < n; i++) {
    if (dtype == PH_F32) {
      ((float *)y)[i] = (float)x[i];
    } else {
      ((double *)y)[i] = (double)x[i];
    }
  }
}

static int64_t pivot_row(const long double *A, int64_t d, int64_t k) {
  int64_t best = k;
  for (int64_t i = k + 1; i < d; i++) {
    if (fabsl(A[i * d + k]) >
        fabsl(A[best * d + k])) { // NOLINT(clang-analyzer-core.CallAndMessage): it thinks that d > 0 and d * d = 0
      best = i;
    }
  }
  return best;
}

static void swap_rows(long double *A, int64_t d, int64_t i, int64_t j) {
  for (int64_t c = 0; i != j && c < d; c++) {
    long double t = A[i * d + c];
    A[i * d + c] = A[j * d + c];
    A[j * d + c] = t;
  }
}

/* One Gauss-Jordan step on pivot k, in place: column k of the identity replaces the eliminated column. */
static void eliminate(long double *A, int64_t d, int64_t k) {
  long double p = 1.0L / A[k * d + k];
  A[k * d + k] = 1.0L;
  for (int64_t j = 0; j < d; j++) {
    A[k * d + j] *= p;
  }
  for (int64_t i = 0; i < d; i++) {
    if (i == k) {
      continue;
    }
    long double f = A[i * d + k];
    A[i * d + k] = 0.0L;
    for (int64_t j = 0; j < d; j++) {
      A[i * d + j] -= f * A[k * d + j];
    }
  }
}

static void invert(long double *A, int64_t d, int64_t *perm) {
  for (int64_t k = 0; k < d; k++) {
    perm[k] = pivot_row(A, d, k);
    swap_rows(A, d, k, perm[k]);
    eliminate(A, d, k);
  }
  for (int64_t k = d - 1; k >= 0; k--) { /* undo the row swaps as column swaps */
    for (int64_t i = 0; perm[k] != k && i < d; i++) {
      long double t = A[i * d + k];
      A[i * d + k] = A[i * d + perm[k]];
      A[i * d + perm[k]] = t;
    }
  }
}

void ph_inverse_pivoted(ph_dtype dtype, int64_t d, void *K) {
  enum { SMALL = 64 };
  long double small[SMALL * SMALL];
  int64_t perm_small[SMALL];
  long double *A = d <= SMALL ? small : ph_mem_new((size_t)(d * d), sizeof *A);
  int64_t *perm = d <= SMALL ? perm_small : ph_mem_new((size_t)d, sizeof *perm);
  if (A && perm) {
    load(dtype, d * d, K, A);
    invert(A, d, perm);
    store(dtype, d * d, A, K);
  } else { /* no memory: an inverse that says so instead of a wrong one */
    memset(K, 0xff, (size_t)(d * d) * ph_dtype_size(dtype));
  }
  if (d > SMALL) {
    ph_mem_free(A);
    ph_mem_free(perm);
  }
}
