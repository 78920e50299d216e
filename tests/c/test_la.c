#include "ph_test.h"

#include <float.h>

#include "base/la.h"
#include "base/rng.h"

enum { N_MAX = 65 };
static const int sizes[] = {1, 2, 3, 7, 15, 16, 17, 33, 64, 65};
static const char *const backward = "backward stable: a few n eps of the norm";

/* Standard normal entries, a stream of their own per name. */
static double *matrix(const char *name, int m, int n) {
  double *A = ph_mem_new((size_t)m * (size_t)n, sizeof *A);
  assert_non_null(A);
  for (int k = 0; k < m * n; k++) {
    A[k] = ph_rng_normal(ph_rng_of(11, name), (uint64_t)k);
  }
  return A;
}

static double *symmetric(const char *name, int n, bool definite) {
  double *A = matrix(name, n, n);
  double *S = ph_mem_new((size_t)(n * n), sizeof *S);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      if (definite) {
        for (int k = 0; k < n; k++) {
          S[i * n + j] += A[i * n + k] * A[j * n + k] + (i == j ? 0.1 : 0);
        }
      } else {
        S[i * n + j] = A[i * n + j] + A[j * n + i];
      }
    }
  }
  ph_mem_free(A);
  return S;
}

/* Every element of op(A) op(B), by the definition, against C. */
static void check_product(bool ta, bool tb, int m, int n, int k, const double *A, const double *B, const double *C,
                          double tol) {
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double want = 0;
      for (int p = 0; p < k; p++) {
        want += A[ta ? p * m + i : i * k + p] * B[tb ? j * k + p : p * n + j];
      }
      ph_near(want, C[i * n + j], tol, 0, backward);
    }
  }
}

static void check_orthonormal_columns(int m, int n, const double *Q) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      double dot = 0;
      for (int k = 0; k < m; k++) {
        dot += Q[k * n + i] * Q[k * n + j];
      }
      ph_near(i == j, dot, 1e-13, 0, backward);
    }
  }
}

static int start_la(void **state) {
  (void)state;
  ph_la_info info;
  return ph_la_start(&info, NULL);
}

static void the_start_check_passes(void **state) {
  (void)state;
  ph_la_info info;
  memset(&info, 0xff, sizeof info);
  ph_ok(ph_la_start(&info, NULL));
  assert_true(info.ok);
  assert_true(info.selftest > 0 && info.selftest <= 1e-5);
  assert_int_equal(1, info.threads);
  assert_non_null(strstr(info.config, "OpenBLAS"));
  assert_true(strlen(info.core) > 0);
  assert_true(!info.wanted[0] || !strcmp(info.wanted, ph_la_wanted_core()));
  if (!strcmp(info.core, "Prescott")) {
    assert_string_equal(ph_la_wanted_core(), info.wanted);
  }
}

static void a_rate_is_measured(void **state) {
  (void)state;
  assert_true(ph_la_sgemm_rate(64, 0.01) > 0.05);
  assert_true(ph_la_sgemm_rate(0, 0.01) == 0);
}

static void gemm_equals_the_definition(void **state) {
  (void)state;
  double *A = matrix("gemm.A", N_MAX, N_MAX);
  double *B = matrix("gemm.B", N_MAX, N_MAX);
  double *C = matrix("gemm.C", N_MAX, N_MAX);
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    for (int t = 0; t < 4; t++) {
      int m = sizes[s];
      int n = sizes[(s + 3) % PH_COUNT(sizes)];
      int k = sizes[(s + 5) % PH_COUNT(sizes)];
      ph_la_gemm(t & 1, t & 2, m, n, k, A, B, C);
      check_product(t & 1, t & 2, m, n, k, A, B, C, 1e-13);
    }
  }
  C[0] = 7;
  ph_la_gemm(false, false, 0, 3, 3, A, B, C);
  assert_true(C[0] == 7);
  ph_la_gemm(false, false, 1, 1, 0, A, B, C);
  assert_true(C[0] == 0); /* the empty sum */
  ph_mem_free(A);
  ph_mem_free(B);
  ph_mem_free(C);
}

static void eigh_diagonalises(void **state) {
  (void)state;
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int n = sizes[s];
    double *A = symmetric("eigh", n, false);
    double *V = matrix("eigh.V", n, n);
    double *AV = matrix("eigh.AV", n, n);
    double w[N_MAX];
    double only[N_MAX];
    ph_ok(ph_la_eigh(n, A, w, V, NULL));
    ph_ok(ph_la_eigh(n, A, only, NULL, NULL));
    check_orthonormal_columns(n, n, V);
    ph_la_gemm(false, false, n, n, n, A, V, AV);
    for (int j = 0; j < n; j++) {
      assert_true(j == 0 || w[j - 1] <= w[j]);
      ph_near(w[j], only[j], 1e-12, 0, backward);
      for (int i = 0; i < n; i++) {
        ph_near(w[j] * V[i * n + j], AV[i * n + j], 1e-12, 0, backward);
      }
    }
    ph_mem_free(A);
    ph_mem_free(V);
    ph_mem_free(AV);
  }
}

static void eigh_gen_solves_a_known_pencil(void **state) {
  (void)state;
  double w[2];
  ph_err err;
  ph_ok(ph_la_eigh_gen(2, (double[]){2, 0, 0, 12}, (double[]){4, 0, 0, 3}, w, NULL));
  ph_near(0.5, w[0], 0, 1e-15, "exact quotients");
  ph_near(4, w[1], 0, 1e-15, "exact quotients");
  ph_fails(PH_E_SINGULAR, "minor 2", ph_la_eigh_gen(2, (double[]){1, 0, 0, 1}, (double[]){1, 0, 0, -1}, w, &err), err);
}

static void eig_finds_complex_pairs(void **state) {
  (void)state;
  double re[3];
  double im[3];
  ph_ok(ph_la_eig(3, (double[]){0, -2, 0, 2, 0, 0, 0, 0, -5}, re, im, NULL));
  double pair = 0;
  double real = 0;
  for (int i = 0; i < 3; i++) {
    if (im[i] != 0) {
      pair += fabs(im[i]);
      ph_near(0, re[i], 1e-14, 0, backward);
    } else {
      real += re[i];
    }
  }
  ph_near(4, pair, 1e-14, 0, backward);
  ph_near(-5, real, 1e-14, 0, backward);
}

static void svd_rebuilds(void **state) {
  (void)state;
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int m = sizes[s];
    int n = sizes[(s + 4) % PH_COUNT(sizes)];
    int r = m < n ? m : n;
    double *A = matrix("svd", m, n);
    double *U = matrix("svd.U", m, r);
    double *Vt = matrix("svd.V", r, n);
    double sv[N_MAX];
    double only[N_MAX];
    ph_ok(ph_la_svd(m, n, A, sv, U, Vt, NULL));
    ph_ok(ph_la_svd(m, n, A, only, NULL, NULL, NULL));
    check_orthonormal_columns(m, r, U);
    for (int j = 0; j < r; j++) {
      assert_true(sv[j] >= 0 && (j == 0 || sv[j] <= sv[j - 1]));
      ph_near(sv[j], only[j], 1e-12, 0, backward);
      for (int i = 0; i < m; i++) {
        U[i * r + j] *= sv[j];
      }
    }
    check_product(false, false, m, n, r, U, Vt, A, 1e-12);
    ph_mem_free(A);
    ph_mem_free(U);
    ph_mem_free(Vt);
  }
}

static void logdet_has_value_and_sign(void **state) {
  (void)state;
  double value;
  int sign;
  ph_ok(ph_la_logdet(2, (double[]){0, 3, 2, 0}, &value, &sign, NULL)); /* det -6, one exchange */
  ph_near(log(6), value, 0, 1e-15, "two logarithms");
  assert_int_equal(-1, sign);
  ph_ok(ph_la_logdet(3, (double[]){-0.5, 0, 0, 9, -0.25, 0, 1, 1, -0.125}, &value, &sign, NULL));
  ph_near(-6 * log(2), value, 0, 1e-14, "three logarithms of inexact pivots");
  assert_int_equal(-1, sign);
  ph_ok(ph_la_logdet(2, (double[]){1, 2, 2, 4}, &value, &sign, NULL));
  assert_true(value == -INFINITY);
  assert_int_equal(0, sign);
  ph_ok(ph_la_logdet(0, NULL, &value, &sign, NULL));
  assert_true(value == 0 && sign == 1); /* the empty product */
  double big[N_MAX * N_MAX] = {0};
  for (int i = 0; i < N_MAX; i++) {
    big[i * N_MAX + i] = 1e-30; /* the determinant itself underflows */
  }
  ph_ok(ph_la_logdet(N_MAX, big, &value, &sign, NULL));
  ph_near(N_MAX * log(1e-30), value, 0, 1e-14, "sum of equal terms");
  assert_int_equal(1, sign);
}

static void solve_and_inverse_agree(void **state) {
  (void)state;
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int n = sizes[s];
    int m = sizes[(s + 2) % PH_COUNT(sizes)];
    double *A = symmetric("solve", n, true);
    double *B = matrix("solve.B", n, m);
    double *X = matrix("X", n, m);
    double *I = matrix("I", n, n);
    double *E = matrix("E", n, n);
    A[n - 1] += 0.5; /* not symmetric any more */
    ph_ok(ph_la_solve(n, m, A, B, X, NULL));
    check_product(false, false, n, m, n, A, X, B, 1e-9);
    ph_ok(ph_la_inverse(n, A, I, NULL));
    ph_la_gemm(false, false, n, n, n, A, I, E);
    for (int k = 0; k < n * n; k++) {
      ph_near(k % (n + 1) == 0, E[k], 1e-9, 0, "condition of the matrix times eps");
    }
    ph_mem_free(A);
    ph_mem_free(B);
    ph_mem_free(X);
    ph_mem_free(I);
    ph_mem_free(E);
  }
}

static void singular_matrices_are_named(void **state) {
  (void)state;
  double X[4] = {7, 7, 7, 7};
  ph_err err;
  const double S[] = {1, 2, 2, 4};
  ph_fails(PH_E_SINGULAR, "zero pivot 2", ph_la_solve(2, 2, S, (double[]){1, 0, 0, 1}, X, &err), err);
  ph_fails(PH_E_SINGULAR, "zero pivot 2", ph_la_inverse(2, S, X, &err), err);
  assert_true(X[0] == 7 && X[3] == 7);
}

static void cholesky_factors_or_says_no(void **state) {
  (void)state;
  bool definite = false;
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int n = sizes[s];
    double *A = symmetric("chol", n, true);
    double *F = matrix("F", n, n);
    ph_ok(ph_la_cholesky(n, A, F, &definite, NULL));
    assert_true(definite);
    for (int i = 0; i < n; i++) {
      for (int j = i + 1; j < n; j++) {
        assert_true(F[i * n + j] == 0);
      }
    }
    check_product(false, true, n, n, n, F, F, A, 1e-11);
    A[n * n - 1] = -1;
    ph_ok(ph_la_cholesky(n, A, F, &definite, NULL));
    assert_false(definite);
    ph_mem_free(A);
    ph_mem_free(F);
  }
}

static void qr_is_thin_with_positive_diagonal(void **state) {
  (void)state;
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int n = sizes[s];
    int m = s % 2 ? n : n + 5;
    double *A = matrix("qr", m, n);
    double *Q = matrix("Q", m, n);
    double *R = matrix("R", n, n);
    ph_ok(ph_la_qr(m, n, A, Q, R, NULL));
    check_orthonormal_columns(m, n, Q);
    check_product(false, false, m, n, n, Q, R, A, 1e-12);
    for (int i = 0; i < n; i++) {
      assert_true(R[i * n + i] > 0);
      for (int j = 0; j < i; j++) {
        assert_true(R[i * n + j] == 0);
      }
    }
    ph_mem_free(A);
    ph_mem_free(Q);
    ph_mem_free(R);
  }
  ph_err err;
  double out[4];
  ph_fails(PH_E_SHAPE, "qr: (1, 2)", ph_la_qr(1, 2, (double[]){1, 2}, out, out, &err), err);
}

static ph_status call(int which, int n, const double *A, const double *B, double *X, double *Y, ph_err *err) {
  int sign;
  bool definite;
  switch (which) {
  case 0: return ph_la_eigh(n, A, X, Y, err);
  case 1: return ph_la_eigh_gen(n, A, B, X, err);
  case 2: return ph_la_eig(n, A, X, Y, err);
  case 3: return ph_la_svd(n, n, A, X, NULL, NULL, err);
  case 4: return ph_la_logdet(n, A, X, &sign, err);
  case 5: return ph_la_solve(n, n, A, B, X, err);
  case 6: return ph_la_inverse(n, A, X, err);
  case 7: return ph_la_cholesky(n, A, X, &definite, err);
  default: return ph_la_qr(n, n, A, X, Y, err);
  }
}

enum { CALLS = 9 };

static void what_is_not_finite_is_refused(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  for (int which = 0; which < CALLS; which++) {
    for (int b = 0; b < PH_COUNT(bad); b++) {
      double A[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
      double I[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
      double X[9] = {7};
      double Y[9] = {7};
      ph_err err;
      A[5] = bad[b];
      ph_fails(PH_E_NONFINITE, "element (2, 3)", call(which, 3, A, I, X, Y, &err), err);
      assert_true(X[0] == 7 && Y[0] == 7);
    }
  }
  double X[4];
  ph_err err;
  ph_fails(PH_E_NONFINITE, "(2, 1)", ph_la_solve(2, 1, (double[]){1, 0, 0, 1}, (double[]){1, NAN}, X, &err), err);
}

static void empty_matrices_are_fine(void **state) {
  (void)state;
  double X[1];
  double Y[1];
  for (int which = 0; which < CALLS; which++) {
    ph_ok(call(which, 0, X, X, X, Y, NULL));
  }
}

static ph_status call_all(void) {
  const double A[9] = {4, 1, 0, 1, 3, 1, 0, 1, 2};
  const double I[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  double X[9];
  double Y[9];
  ph_status st = PH_OK;
  for (int which = 0; !st && which < CALLS; which++) {
    st = call(which, 3, A, I, X, Y, NULL);
  }
  return st;
}

static void every_failed_allocation_is_reported(void **state) {
  (void)state;
  ph_each_failed_allocation(call_all());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(the_start_check_passes),
      PH_TEST(a_rate_is_measured),
      PH_TEST(gemm_equals_the_definition),
      PH_TEST(eigh_diagonalises),
      PH_TEST(eigh_gen_solves_a_known_pencil),
      PH_TEST(eig_finds_complex_pairs),
      PH_TEST(svd_rebuilds),
      PH_TEST(logdet_has_value_and_sign),
      PH_TEST(solve_and_inverse_agree),
      PH_TEST(singular_matrices_are_named),
      PH_TEST(cholesky_factors_or_says_no),
      PH_TEST(qr_is_thin_with_positive_diagonal),
      PH_TEST(what_is_not_finite_is_refused),
      PH_TEST(empty_matrices_are_fine),
      PH_TEST(every_failed_allocation_is_reported),
  };
  return cmocka_run_group_tests_name("la", tests, start_la, NULL);
}
