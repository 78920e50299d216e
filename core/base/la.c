/* la.c - the wrappers, and the check of BLAS at start. LAPACK overwrites its input, so every call works on a copy. */
#include "base/la.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cblas.h>
#include <lapacke.h>

#include "base/mem.h"

_Static_assert(sizeof(lapack_int) == sizeof(int), "the LP64 interface is linked");

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

/* ---- products, and the check at start ---- */

void ph_la_gemm(bool ta, bool tb, int m, int n, int k, const double *A, const double *B, double *C) {
  if (m == 0 || n == 0) {
    return;
  }
  if (k == 0) { /* CBLAS refuses leading dimensions of 0 */
    memset(C, 0, cells(m, n) * sizeof *C);
    return;
  }
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1, A, ta ? m : k,
              B, tb ? k : n, 0, C, n);
}

enum { PROBE_MAX = 67 };

/* Numbers in [-1, 1] without a pattern that a wrong kernel could respect. */
static double probe_value(uint32_t i) { return (double)((i * 2654435761u) >> 8) * 0x1p-23 - 1; }

/* Worst |got - want| / sum |a b| of one product in both types, every element, transposed or not. */
static double probe(bool ta, bool tb, int m, int n, int k, bool single) {
  static double A[PROBE_MAX * PROBE_MAX];
  static double B[PROBE_MAX * PROBE_MAX];
  static double C[PROBE_MAX * PROBE_MAX];
  static float Af[PROBE_MAX * PROBE_MAX];
  static float Bf[PROBE_MAX * PROBE_MAX];
  static float Cf[PROBE_MAX * PROBE_MAX];
  for (int i = 0; i < m * k; i++) {
    A[i] = Af[i] = (float)probe_value((uint32_t)i);
  }
  for (int i = 0; i < k * n; i++) {
    B[i] = Bf[i] = (float)probe_value((uint32_t)i + 77777);
  }
  if (single) {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1, Af,
                ta ? m : k, Bf, tb ? k : n, 0, Cf, n);
  } else {
    ph_la_gemm(ta, tb, m, n, k, A, B, C);
  }
  double worst = 0;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double want = 0;
      double size = 0;
      double got = single ? Cf[i * n + j] : C[i * n + j];
      for (int p = 0; p < k; p++) {
        double term = A[ta ? p * m + i : i * k + p] * B[tb ? j * k + p : p * n + j];
        want += term;
        size += fabs(term);
      }
      double error = fabs(got - want) / size;
      if (!(error <= worst)) { /* NaN counts */
        worst = error;
      }
    }
  }
  return worst;
}

static double worst_probe(bool single) {
  static const int sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {17, 31, 33}, {32, 32, 32}, {64, 64, 64}, {67, 65, 63}};
  double worst = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (int t = 0; t < 4; t++) {
      double error = probe(t & 1, t & 2, sizes[s][0], sizes[s][1], sizes[s][2], single);
      if (!(error <= worst)) {
        worst = error;
      }
    }
  }
  return worst;
}

const char *ph_la_wanted_core(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return __builtin_cpu_supports("avx512bf16") ? "Cooperlake" : "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return "Haswell";
  }
#endif
  return "";
}

/* Cores whose kernels are as wide as the wanted one's: nothing to gain by asking for another. */
static bool core_fits(const char *core, const char *wanted) {
  static const char *const wide[] = {"Cooperlake", "SapphireRapids", "SkylakeX"};
  static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
  if (!wanted[0] || !strcasecmp(core, wanted)) {
    return true;
  }
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
    if (!strcasecmp(core, wide[i])) {
      return strcasecmp(core, "SkylakeX") || strcasecmp(wanted, "Cooperlake");
    }
  }
  for (size_t i = 0; i < sizeof avx2 / sizeof avx2[0]; i++) {
    if (!strcasecmp(core, avx2[i])) {
      return !strcasecmp(wanted, "Haswell");
    }
  }
  return false;
}

void ph_la_start(ph_la_info *out) {
  openblas_set_num_threads(1);
  const char *wanted = ph_la_wanted_core();
  snprintf(out->config, sizeof out->config, "%s", openblas_get_config());
  snprintf(out->core, sizeof out->core, "%s", openblas_get_corename());
  snprintf(out->wanted, sizeof out->wanted, "%s", core_fits(out->core, wanted) ? "" : wanted);
  out->threads = openblas_get_num_threads();
  double single = worst_probe(true);
  double twice = worst_probe(false);
  out->selftest = fmax(single, twice);
  out->ok = single <= 1e-5 && twice <= 1e-12;
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double ph_la_sgemm_rate(int n, double seconds) {
  float *M = n > 0 ? ph_mem_new(3 * cells(n, n), sizeof *M) : NULL;
  if (!M) {
    return 0;
  }
  float *A = M;
  float *B = M + cells(n, n);
  float *C = B + cells(n, n);
  for (size_t k = 0; k < 2 * cells(n, n); k++) {
    M[k] = (float)probe_value((uint32_t)k);
  }
  double best = 0;
  double flops = 2.0 * n * n * n;
  double end = seconds_now() + seconds;
  int batch = 1 + (int)(1e7 / flops); /* the clock's resolution must not count */
  do {
    double t = seconds_now();
    for (int r = 0; r < batch; r++) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, A, n, B, n, 0, C, n);
    }
    best = fmax(best, batch * flops / (seconds_now() - t));
  } while (seconds_now() < end);
  ph_mem_free(M);
  return best * 1e-9;
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
  st = check_info("eigh", LAPACKE_dsyevd(LAPACK_ROW_MAJOR, V ? 'V' : 'N', 'L', n, W, n, values), PH_E_CONVERGE,
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
  lapack_int info = LAPACKE_dsygvd(LAPACK_ROW_MAJOR, 1, 'N', 'L', n, W, n, M, n, values);
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
  st = check_info("eig", LAPACKE_dgeev(LAPACK_ROW_MAJOR, 'N', 'N', n, W, n, values, values + n, NULL, n, NULL, n),
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
  st = check_info("svd", LAPACKE_dgesdd(LAPACK_ROW_MAJOR, U ? 'S' : 'N', m, n, W, n, out, u, r, vt, n), PH_E_CONVERGE,
                  "no convergence, step", err);
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
    *info = LAPACKE_dgetrf(LAPACK_ROW_MAJOR, n, n, *W, n, *pivots);
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
    st = check_info("solve", LAPACKE_dgetrs(LAPACK_ROW_MAJOR, 'N', n, m, W, n, pivots, X, m), PH_E_INTERNAL, "", err);
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
    st = check_info("inverse", LAPACKE_dgetri(LAPACK_ROW_MAJOR, n, W, n, pivots), PH_E_SINGULAR,
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
  lapack_int info = n > 0 ? LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, F, n) : 0;
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
  st = check_info("qr", LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, m, n, W, n, tau), PH_E_INTERNAL, "", err);
  if (st) {
    goto done;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      R[cells(i, n) + (size_t)j] = j >= i ? W[cells(i, n) + (size_t)j] : 0;
    }
  }
  memcpy(Q, W, cells(m, n) * sizeof *Q);
  st = check_info("qr", LAPACKE_dorgqr(LAPACK_ROW_MAJOR, m, n, n, Q, n, tau), PH_E_INTERNAL, "", err);
  make_diagonal_positive(m, n, Q, R);
done:
  ph_mem_free(tau);
  ph_mem_free(W);
  return st;
}
