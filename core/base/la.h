/* la.h - the one file that calls BLAS and LAPACK. float64, row-major, for laws, diagnostics and pivoted fallbacks;
 * never on the training path (docs/architecture.md, "Same bits").
 *
 * Inputs are checked finite before a factorisation (LAPACK may hang on NaN): PH_E_NONFINITE. info < 0 is our bug
 * (assert), info > 0 is PH_E_SINGULAR or PH_E_CONVERGE. Outputs do not alias inputs unless said. All matrices are
 * (rows, cols) contiguous doubles owned by the caller.
 */
#ifndef PH_BASE_LA_H
#define PH_BASE_LA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ph_la_info {
  char config[128];   /* openblas_get_config() */
  char core[32];      /* openblas_get_corename() */
  char wanted[32];    /* the core type this CPU should use, "" if the one in use fits */
  const char *origin; /* who chose it: "user" (OPENBLAS_CORETYPE), "host" (ph_la_wanted_core) or "library" */
  int threads;        /* always 1 after ph_la_start */
  double selftest;    /* worst relative error of the start-up products against a plain loop */
  bool ok;            /* selftest within 1e-12 (float64) and 1e-5 (float32) */
} ph_la_info;

/* Loads BLAS and LAPACK, sets them to one thread, and multiplies a few matrices of odd sizes against a plain loop (float32 and
 * float64). Comes before every other function here; not for two threads at a time. PH_E_NOMEM, PH_E_NOTFOUND: they cannot be
 * loaded. */
ph_status ph_la_start(ph_la_info *out, ph_err *err) PH_MUST_CHECK;

/* The OPENBLAS_CORETYPE that fits this CPU: "Cooperlake"/"SkylakeX" with AVX-512, "Haswell" with AVX2, "" otherwise. */
const char *ph_la_wanted_core(void);

/* sgemm rate of n x n x n in GFLOP/s over about `seconds`; for `--version -v` and bench. */
double ph_la_sgemm_rate(int n, double seconds);

/* C (m,n) = op(A) op(B), op = transpose when ta/tb; A is (m,k) or (k,m) as stored. */
void ph_la_gemm(bool ta, bool tb, int m, int n, int k, const double *A, const double *B, double *C);

/* Eigenvalues ascending (w[n]) and, if V is not NULL, orthonormal eigenvectors in the columns of V (n,n). A symmetric. */
ph_status ph_la_eigh(int n, const double *A, double *w, double *V, ph_err *err) PH_MUST_CHECK;

/* Generalized symmetric-definite A x = w B x, w ascending. */
ph_status ph_la_eigh_gen(int n, const double *A, const double *B, double *w, ph_err *err) PH_MUST_CHECK;

/* Eigenvalues of a general matrix: re[n], im[n]. */
ph_status ph_la_eig(int n, const double *A, double *re, double *im, ph_err *err) PH_MUST_CHECK;

/* Singular values descending s[min(m,n)]; U (m,min), Vt (min,n) may be NULL (both or none). */
ph_status ph_la_svd(int m, int n, const double *A, double *s, double *U, double *Vt, ph_err *err) PH_MUST_CHECK;

/* Pivoted LU: *logabs = ln|det A| (-inf if exactly singular), *sign in {-1,0,1}. */
ph_status ph_la_logdet(int n, const double *A, double *logabs, int *sign, ph_err *err) PH_MUST_CHECK;

/* X (n,m) with A X = B (n,m), pivoted LU. PH_E_SINGULAR with the pivot index in the text. */
ph_status ph_la_solve(int n, int m, const double *A, const double *B, double *X, ph_err *err) PH_MUST_CHECK;
ph_status ph_la_inverse(int n, const double *A, double *X, ph_err *err) PH_MUST_CHECK;

/* Lower Cholesky factor F with A = F F^T; *definite = false (and F undefined) when A is not positive definite. */
ph_status ph_la_cholesky(int n, const double *A, double *F, bool *definite, ph_err *err) PH_MUST_CHECK;

/* Thin QR of A (m,n), m >= n: Q (m,n), R (n,n) upper with non-negative diagonal. */
ph_status ph_la_qr(int m, int n, const double *A, double *Q, double *R, ph_err *err) PH_MUST_CHECK;

#endif
