/* la.c - the wrappers. LAPACK overwrites its input, so every call works on a copy. */
#include "base/la.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/la_lib.h"
#include "base/mem.h"

_Static_assert(sizeof(lapack_int) == sizeof(int), "the LP64 interface is loaded");

static const ph_la_lib *lib(void) { return ph_la_lib_get(); }

static size_t cells(int m, int n) { return (size_t)m * (size_t)n; }

static ph_status no_memory(ph_err *err, const char *who) {
  return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", who);
}

/* LAPACK may loop forever on NaN, and its results for infinities are meaningless. */
static ph_status check_finite(const char *who, int m, int n, const double *A, ph_err *err) {
  for (size_t k = 0; k < cells(m, n); k++) {
    if (!isfinite(A[k])) {
      return ph_err_set(err, PH_E_NONFINITE, "%s: element (%zu, %zu) is %g", who, k / (size_t)n + 1, k % (size_t)n + 1,
                        A[k]);
    }
  }
  return PH_OK;
}

/* A finite copy to be overwritten. */
static ph_status work_copy(const char *who, int m, int n, const double *A, double **copy, ph_err *err) {
  ph_status st = check_finite(who, m, n, A, err);
  if (st) {
    return st;
  }
  double *W = ph_mem_new(cells(m, n), sizeof *W);
  if (!W) {
    return no_memory(err, who);
  }
  if (cells(m, n) > 0) {
    memcpy(W, A, cells(m, n) * sizeof *W);
  }
  *copy = W;
  return PH_OK;
}

/* LAPACKE allocates its own workspaces and says so with codes of its own; other negative numbers are our bug. */
static ph_status check_info(const char *who, lapack_int info, ph_status positive, const char *what, ph_err *err) {
  if (info == 0) {
    return PH_OK;
  }
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) {
    return no_memory(err, who);
  }
  assert(info > 0);
  return ph_err_set(err, positive, "%s: %s %d", who, what, (int)info);
}

void ph_la_gemm(bool ta, bool tb, int m, int n, int k, const double *A, const double *B, double *C) {
  if (m == 0 || n == 0) {
    return;
  }
  if (k == 0) { /* CBLAS refuses leading dimensions of 0 */
    memset(C, 0, cells(m, n) * sizeof *C);
    return;
  }
  lib()->cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1, A,
                     ta ? m : k, B, tb ? k : n, 0, C, n);
}

/* ---- spectra ---- */

ph_status ph_la_eigh(int n, const double *A, double *w, double *V, ph_err *err) {
  double *W = NULL;
  ph_status st = work_copy("eigh", n, n, A, &W, err);
  if (st || n == 0) {
    goto done;
  }
  double *values = ph_mem_new((size_t)n, sizeof *values);
  if (!values) {
    st = no_memory(err, "eigh");
    goto done;
  }
  st = check_info("eigh", lib()->LAPACKE_dsyevd(LAPACK_ROW_MAJOR, V ? 'V' : 'N', 'L', n, W, n, values), PH_E_CONVERGE,
                  "no convergence at element", err);
  if (!st) {
    memcpy(w, values, (size_t)n * sizeof *w);
    if (V) {
      memcpy(V, W, cells(n, n) * sizeof *V);
    }
  }
  ph_mem_free(values);
done:
  ph_mem_free(W);
  return st;
}

ph_status ph_la_eigh_gen(int n, const double *A, const double *B, double *w, ph_err *err) {
  double *W = NULL;
  double *M = NULL;
  double *values = NULL;
  ph_status st = work_copy("eigh_gen", n, n, A, &W, err);
  if (!st) {
    st = work_copy("eigh_gen", n, n, B, &M, err);
  }
  if (!st && !(values = ph_mem_new((size_t)n, sizeof *values))) {
    st = no_memory(err, "eigh_gen");
  }
  if (st || n == 0) {
    goto done;
  }
  lapack_int info = lib()->LAPACKE_dsygvd(LAPACK_ROW_MAJOR, 1, 'N', 'L', n, W, n, M, n, values);
  if (info > n) {
    st = ph_err_set(err, PH_E_SINGULAR, "eigh_gen: B is not positive definite (leading minor %d)", (int)info - n);
  } else {
    st = check_info("eigh_gen", info, PH_E_CONVERGE, "no convergence at element", err);
  }
  if (!st) {
    memcpy(w, values, (size_t)n * sizeof *w);
  }
done:
  ph_mem_free(values);
  ph_mem_free(M);
  ph_mem_free(W);
  return st;
}

ph_status ph_la_eig(int n, const double *A, double *re, double *im, ph_err *err) {
  double *W = NULL;
  double *values = NULL;
  ph_status st = work_copy("eig", n, n, A, &W, err);
  if (!st && !(values = ph_mem_new(2 * (size_t)n, sizeof *values))) {
    st = no_memory(err, "eig");
  }
  if (st || n == 0) {
    goto done;
  }
  st =
      check_info("eig", lib()->LAPACKE_dgeev(LAPACK_ROW_MAJOR, 'N', 'N', n, W, n, values, values + n, NULL, n, NULL, n),
                 PH_E_CONVERGE, "no convergence at eigenvalue", err);
  if (!st) {
    memcpy(re, values, (size_t)n * sizeof *re);
    memcpy(im, values + n, (size_t)n * sizeof *im);
  }
done:
  ph_mem_free(values);
  ph_mem_free(W);
  return st;
}

ph_status ph_la_svd(int m, int n, const double *A, double *s, double *U, double *Vt, ph_err *err) {
  assert(!U == !Vt);
  int r = m < n ? m : n;
  double *W = NULL;
  double *out = NULL;
  ph_status st = work_copy("svd", m, n, A, &W, err);
  /* Results go aside first: the caller's arrays stay untouched when the iteration fails. */
  if (!st && !(out = ph_mem_new((size_t)r + cells(m, r) + cells(r, n), sizeof *out))) {
    st = no_memory(err, "svd");
  }
  if (st || r == 0) {
    goto done;
  }
  double *u = out + r;
  double *vt = u + cells(m, r);
  st = check_info("svd", lib()->LAPACKE_dgesdd(LAPACK_ROW_MAJOR, U ? 'S' : 'N', m, n, W, n, out, u, r, vt, n),
                  PH_E_CONVERGE, "no convergence, step", err);
  if (!st) {
    memcpy(s, out, (size_t)r * sizeof *s);
    if (U) {
      memcpy(U, u, cells(m, r) * sizeof *U);
      memcpy(Vt, vt, cells(r, n) * sizeof *Vt);
    }
  }
done:
  ph_mem_free(out);
  ph_mem_free(W);
  return st;
}

/* ---- factorisations ---- */

/* W becomes the LU factors, *pivots the row exchanges; *info > 0 names a zero pivot. Both owned by the caller. */
static ph_status lu(const char *who, int n, const double *A, double **W, lapack_int **pivots, lapack_int *info,
                    ph_err *err) {
  ph_status st = work_copy(who, n, n, A, W, err);
  if (!st && !(*pivots = ph_mem_new((size_t)n, sizeof **pivots))) {
    st = no_memory(err, who);
  }
  *info = 0;
  if (!st && n > 0) {
    *info = lib()->LAPACKE_dgetrf(LAPACK_ROW_MAJOR, n, n, *W, n, *pivots);
  }
  return *info < 0 ? check_info(who, *info, PH_E_SINGULAR, "", err) : st;
}

ph_status ph_la_logdet(int n, const double *A, double *logabs, int *sign, ph_err *err) {
  double *W = NULL;
  lapack_int *pivots = NULL;
  lapack_int info;
  ph_status st = lu("logdet", n, A, &W, &pivots, &info, err);
  if (!st) {
    double sum = 0;
    int s = 1;
    for (int i = 0; i < n; i++) {
      double u = W[cells(i, n) + (size_t)i];
      sum += log(fabs(u));
      s = u < 0 ? -s : s;
      if (pivots[i] != i + 1) {
        s = -s;
      }
    }
    *logabs = info > 0 ? -INFINITY : sum;
    *sign = info > 0 ? 0 : s;
  }
  ph_mem_free(pivots);
  ph_mem_free(W);
  return st;
}

ph_status ph_la_solve(int n, int m, const double *A, const double *B, double *X, ph_err *err) {
  double *W = NULL;
  lapack_int *pivots = NULL;
  lapack_int info;
  ph_status st = check_finite("solve", n, m, B, err);
  if (st) {
    return st;
  }
  st = lu("solve", n, A, &W, &pivots, &info, err);
  if (!st) {
    st = check_info("solve", info, PH_E_SINGULAR, "matrix is singular, zero pivot", err);
  }
  if (!st && n > 0 && m > 0) {
    memcpy(X, B, cells(n, m) * sizeof *X);
    st = check_info("solve", lib()->LAPACKE_dgetrs(LAPACK_ROW_MAJOR, 'N', n, m, W, n, pivots, X, m), PH_E_INTERNAL, "",
                    err);
  }
  ph_mem_free(pivots);
  ph_mem_free(W);
  return st;
}

ph_status ph_la_inverse(int n, const double *A, double *X, ph_err *err) {
  double *W = NULL;
  lapack_int *pivots = NULL;
  lapack_int info;
  ph_status st = lu("inverse", n, A, &W, &pivots, &info, err);
  if (!st) {
    st = check_info("inverse", info, PH_E_SINGULAR, "matrix is singular, zero pivot", err);
  }
  if (!st && n > 0) {
    st = check_info("inverse", lib()->LAPACKE_dgetri(LAPACK_ROW_MAJOR, n, W, n, pivots), PH_E_SINGULAR,
                    "matrix is singular, zero pivot", err);
  }
  if (!st && n > 0) {
    memcpy(X, W, cells(n, n) * sizeof *X);
  }
  ph_mem_free(pivots);
  ph_mem_free(W);
  return st;
}

ph_status ph_la_cholesky(int n, const double *A, double *F, bool *definite, ph_err *err) {
  ph_status st = check_finite("cholesky", n, n, A, err);
  if (st) {
    return st;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      F[cells(i, n) + (size_t)j] = j <= i ? A[cells(i, n) + (size_t)j] : 0;
    }
  }
  lapack_int info = n > 0 ? lib()->LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, F, n) : 0;
  if (info < 0) {
    return check_info("cholesky", info, PH_E_INTERNAL, "", err);
  }
  *definite = info == 0;
  return PH_OK;
}

/* Householder signs are a convention; a non-negative diagonal makes Q and R unique for a matrix of full rank. */
static void make_diagonal_positive(int m, int n, double *Q, double *R) {
  for (int i = 0; i < n; i++) {
    if (!(R[cells(i, n) + (size_t)i] < 0)) {
      continue;
    }
    for (int j = i; j < n; j++) {
      R[cells(i, n) + (size_t)j] = -R[cells(i, n) + (size_t)j];
    }
    for (int k = 0; k < m; k++) {
      Q[cells(k, n) + (size_t)i] = -Q[cells(k, n) + (size_t)i];
    }
  }
}

ph_status ph_la_qr(int m, int n, const double *A, double *Q, double *R, ph_err *err) {
  if (m < n) {
    return ph_err_set(err, PH_E_SHAPE, "qr: (%d, %d) has more columns than rows", m, n);
  }
  double *W = NULL;
  double *tau = NULL;
  ph_status st = work_copy("qr", m, n, A, &W, err);
  if (!st && !(tau = ph_mem_new((size_t)n, sizeof *tau))) {
    st = no_memory(err, "qr");
  }
  if (st || n == 0) {
    goto done;
  }
  st = check_info("qr", lib()->LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, m, n, W, n, tau), PH_E_INTERNAL, "", err);
  if (st) {
    goto done;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      R[cells(i, n) + (size_t)j] = j >= i ? W[cells(i, n) + (size_t)j] : 0;
    }
  }
  memcpy(Q, W, cells(m, n) * sizeof *Q);
  st = check_info("qr", lib()->LAPACKE_dorgqr(LAPACK_ROW_MAJOR, m, n, n, Q, n, tau), PH_E_INTERNAL, "", err);
  make_diagonal_positive(m, n, Q, R);
done:
  ph_mem_free(tau);
  ph_mem_free(W);
  return st;
}
