/* solve and cholesky: against their twins, in company, at ties and singular pivots, and where the unpivoted inverse must not go. */
#include "kern_trial.h"

static const int sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 32, 33, 64};

static size_t size_of(ph_dtype type) { return type == PH_F64 ? 8 : 4; }

static void *room(ph_dtype type, int64_t n) {
  void *x = ph_mem_new((size_t)n + 1, size_of(type));
  assert_non_null(x);
  return x;
}

/* Row i of a shuffled diagonal of size 2 plus noise of norm below 1: condition below 3, and no pivot where it belongs. */
static void fill_shuffled(ph_dtype type, void *A, int64_t d) {
  for (int64_t i = 0; i < d; i++) {
    const int64_t there = d % 7 == 0 ? (i + 1) % d : (i * 7 + 3) % d;
    for (int64_t j = 0; j < d; j++) {
      set_elem(type, A, i * d + j, 0.5 * trial_random() / sqrt((double)d) + (j == there ? 2 * (i % 2 ? -1 : 1) : 0));
    }
  }
}

/* G G^T / d + 0.5 I, and a skew part that does not act. */
static void fill_definite(ph_dtype type, void *A, int64_t d) {
  double *G = room(PH_F64, d * d);
  for (int64_t i = 0; i < d * d; i++) {
    G[i] = trial_random();
  }
  for (int64_t i = 0; i < d; i++) {
    for (int64_t j = 0; j < d; j++) {
      double v = (i == j ? 0.5 : 0) + (i < j ? 0.25 : i > j ? -0.25 : 0);
      for (int64_t p = 0; p < d; p++) {
        v += G[i * d + p] * G[j * d + p] / (double)d;
      }
      set_elem(type, A, i * d + j, v);
    }
  }
  ph_mem_free(G);
}

/* Scratch that starts as NaN and is guarded by NaN. */
static void *new_scratch(ph_dtype type, int64_t n) {
  void *scratch = room(type, n + 16);
  for (int64_t i = 0; i < n + 16; i++) {
    set_elem(type, scratch, i, NAN);
  }
  return scratch;
}

static void free_scratch(ph_dtype type, void *scratch, int64_t n) {
  for (int64_t i = n; i < n + 16; i++) {
    assert_true(isnan(elem(type, scratch, i)));
  }
  ph_mem_free(scratch);
}

/* Tiles hold one matrix a row: A, B, X. flag: B is the identity. */
static void run_solve(const ph_kern *k, trial *q) {
  const int64_t n = PH_SOLVE_SCRATCH(q->m, q->n);
  void *scratch = new_scratch(q->type, n);
  k->solve(q->k, q->m, q->n, q->v[0].at, q->v[0].ld, q->flag ? NULL : q->v[1].at, q->v[1].ld, q->v[2].at, q->v[2].ld,
           scratch);
  free_scratch(q->type, scratch, n);
}

static void *matrix_of(trial *q, int i, int64_t c) {
  return (char *)q->v[i].at + (size_t)(c * q->v[i].ld) * size_of(q->type);
}

static void solve_all_sizes(void **state) {
  (void)state;
  static const int columns[] = {1, 2, 5, 16, 17};
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(sizes); i++) {
      for (int j = 0; j <= PH_COUNT(columns); j++) {
        const int d = sizes[i];
        const int m = j < PH_COUNT(columns) ? columns[j] : d;
        trial q = {.type = type, .m = d, .n = m, .k = 1 + j % 3, .flag = j == PH_COUNT(columns)};
        tile_new(&q, 0, q.k, d * d, 3);
        tile_new(&q, 1, q.k, d * m, 1);
        tile_new(&q, 2, q.k, d * m, 2);
        for (int c = 0; c < q.k && d > 0; c++) {
          fill_shuffled(type, matrix_of(&q, 0, c), d);
        }
        trial_run("solve", run_solve, &q, 4, trial_eps(type) * (8 + d), 0); /* condition 3, sums of d terms of size 1 */
      }
    }
  }
}

/* What the kernel promises to do, number by number: the topmost of equal pivots, rank-1 updates, substitution from the last
 * unknown. Up to one block the order of its sums is this one. */
static void scalar_solve(int d, double *a, double *x) {
  for (int k = 0; k < d; k++) {
    int best = k;
    for (int i = k + 1; i < d; i++) {
      best = fabs(a[i * d + k]) > fabs(a[best * d + k]) ? i : best;
    }
    for (int j = 0; j < d; j++) {
      const double t = a[k * d + j];
      const double u = x[k * d + j];
      a[k * d + j] = a[best * d + j];
      x[k * d + j] = x[best * d + j];
      a[best * d + j] = t;
      x[best * d + j] = u;
    }
    for (int i = k + 1; i < d; i++) {
      const double f = -a[i * d + k] / a[k * d + k];
      for (int j = 0; j < d; j++) {
        a[i * d + j] = j > k ? fma(f, a[k * d + j], a[i * d + j]) : a[i * d + j];
        x[i * d + j] = fma(f, x[k * d + j], x[i * d + j]);
      }
    }
  }
  for (int j = 0; j < d; j++) {
    for (int i = d - 1; i >= 0; i--) {
      double s = -x[i * d + j];
      for (int k = i + 1; k < d; k++) {
        s = fma(a[i * d + k], x[k * d + j], s);
      }
      x[i * d + j] = s / -a[i * d + i];
    }
  }
}

static void ties_go_to_the_topmost_row(void **state) {
  (void)state;
  static const char *const names[] = {"avx2", "avx512", "neon"};
  for (int t = 0; t < 300; t++) {
    const int d = 1 + t % 16;
    double a[256];
    double x[256] = {0};
    double got[256];
    double scratch[PH_SOLVE_SCRATCH(16, 16)];
    for (int i = 0; i < d * d; i++) { /* few magnitudes: many ties */
      a[i] = copysign((double)(1 + (int)(3 * fabs(trial_random()))) / 3, trial_random());
      x[i] = i % (d + 1) == 0;
    }
    double copy[256];
    memcpy(copy, a, sizeof a);
    scalar_solve(d, copy, x);
    for (int n = 0; n < PH_COUNT(names); n++) {
      const ph_kern *k = ph_kern_find(PH_F64, names[n]);
      if (!k || !isfinite(x[0])) {
        continue;
      }
      k->solve(1, d, d, a, 0, NULL, 0, got, 0, scratch);
      for (int i = 0; i < d * d; i++) {
        assert_true(got[i] == x[i]);
      }
    }
  }
}

/* docs/laws.md (23): E of the midpoint rule is invertible and its symmetric part has the eigenvalue -11.4; and a matrix whose first
 * pivot is zero. Elimination without pivots does not stand either of their kind. */
static void symmetric_part_may_be_indefinite(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    const double E[4] = {1, -0.25, 25, 1};
    const double want[4] = {1 / 7.25, 0.25 / 7.25, -25 / 7.25, 1 / 7.25};
    void *A = room(type, 4);
    void *scratch = room(type, PH_SOLVE_SCRATCH(2, 2) + PH_INV_SCRATCH(2));
    assert_true(E[0] - fabs(E[1] + E[2]) / 2 < -11.3);
    for (int i = 0; i < 4; i++) {
      set_elem(type, A, i, E[i]);
    }
    k->solve(1, 2, 2, A, 0, NULL, 0, A, 0, scratch);
    for (int i = 0; i < 4; i++) {
      ph_near(want[i], elem(type, A, i), 0, 4 * trial_eps(type), "two divisions and two updates");
    }
    for (int i = 0; i < 4; i++) {
      set_elem(type, A, i, i == 1 || i == 2);
    }
    k->solve(1, 2, 2, A, 0, NULL, 0, A, 0, scratch);
    for (int i = 0; i < 4; i++) {
      assert_true(elem(type, A, i) == (i == 1 || i == 2));
    }
    k->inverse(1, 2, A, 0, 0, NULL, scratch);
    assert_true(k->first_nonfinite(4, A) >= 0);
    ph_mem_free(A);
    ph_mem_free(scratch);
  }
}

/* |A X - I| <= c d eps |A| |X|, for matrices as bad as they come: graded rows, Hilbert's, and the one whose pivots grow like 2^d. */
static void residuals_are_small(void **state) {
  (void)state;
  enum { D = 40 };
  static double A[D * D];
  static double X[D * D];
  static double scratch[PH_SOLVE_SCRATCH(D, D)];
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < D * D; i++) {
      const int r = i / D;
      const int c = i % D;
      A[i] = kind == 0   ? trial_random()
             : kind == 1 ? trial_random() * exp2(-r)
             : kind == 2 ? 1.0 / (r + c + 1) + (r == c) * 1e-9
                         : (r == c || c == D - 1 ? 1
                            : r > c              ? -1
                                                 : 0);
    }
    ph_kern_get(PH_F64)->solve(1, D, D, A, 0, NULL, 0, X, 0, scratch);
    for (int i = 0; i < D; i++) {
      for (int j = 0; j < D; j++) {
        double s = i == j ? -1 : 0;
        double size = 1;
        for (int p = 0; p < D; p++) {
          s += A[i * D + p] * X[p * D + j];
          size += fabs(A[i * D + p] * X[p * D + j]);
        }
        assert_true(fabs(s) <= (kind == 3 ? 0x1p-10 : 40 * D * 0x1p-52) * size); /* kind 3: growth 2^39 of 2^-52 */
      }
    }
  }
}

/* One matrix of five is bad: its last row is equal to the first (for Cholesky: a negative pivot), zero, or not finite. It gives NaN as
 * a whole, its neighbours are what they are alone. */
static void check_company(ph_dtype type, int d, int bad, int cholesky) {
  const ph_kern *k = ph_kern_get(type);
  const size_t one = (size_t)(d * d) * size_of(type);
  char *A = room(type, 5 * d * d);
  char *X = room(type, 5 * d * d);
  char *alone = room(type, d * d);
  void *scratch = room(type, PH_SOLVE_SCRATCH(d, d) + PH_CHOLESKY_SCRATCH(d));
  for (int c = 0; c < 5; c++) {
    (cholesky ? fill_definite : fill_shuffled)(type, A + (size_t)c * one, d);
  }
  for (int j = 0; j < d; j++) {
    const double first = cholesky ? (j == d - 1 ? -1 : 0) : d > 1 ? elem(type, A, 2 * d * d + j) : 0;
    const double v = bad == 0 ? first : bad == 1 ? 0 : bad == 2 ? NAN : -INFINITY;
    set_elem(type, A, 2 * d * d + (d - 1) * d + j, v);
    if (cholesky) {
      set_elem(type, A, 2 * d * d + j * d + d - 1, v);
    }
  }
  if (cholesky) {
    k->cholesky(5, d, A, d * d, X, d * d, scratch);
  } else {
    k->solve(5, d, d, A, d * d, NULL, 0, X, d * d, scratch);
  }
  for (int c = 0; c < 5; c++) {
    if (cholesky) {
      k->cholesky(1, d, A + (size_t)c * one, 0, alone, 0, scratch);
    } else {
      k->solve(1, d, d, A + (size_t)c * one, 0, NULL, 0, alone, 0, scratch);
    }
    for (int i = 0; i < d * d; i++) {
      assert_true(c == 2 ? isnan(elem(type, X, c * d * d + i)) : elem(type, X, c * d * d + i) == elem(type, alone, i));
    }
  }
  ph_mem_free(A);
  ph_mem_free(X);
  ph_mem_free(alone);
  ph_mem_free(scratch);
}

static void singular_matrices_are_nan_alone(void **state) {
  (void)state;
  EACH_TYPE(type) {
    for (int i = 1; i < PH_COUNT(sizes); i++) {
      for (int bad = 0; bad < 4; bad++) {
        check_company(type, sizes[i], bad, 0);
        check_company(type, sizes[i], bad, 1);
      }
    }
  }
}

/* Tiles: A, L. */
static void run_cholesky(const ph_kern *k, trial *q) {
  const int64_t n = PH_CHOLESKY_SCRATCH(q->m);
  void *scratch = new_scratch(q->type, n);
  k->cholesky(q->k, q->m, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, scratch);
  free_scratch(q->type, scratch, n);
}

/* Tiles: L, G, GA. flag: add. */
static void run_cholesky_bwd(const ph_kern *k, trial *q) {
  const int64_t n = PH_CHOLESKY_SCRATCH(q->m);
  void *scratch = new_scratch(q->type, n);
  k->cholesky_bwd(q->k, q->m, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, q->v[2].at, q->v[2].ld, q->flag, scratch);
  free_scratch(q->type, scratch, n);
}

static void cholesky_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(sizes); i++) {
      for (int add = 0; add < 2; add++) {
        const int d = sizes[i];
        trial q = {.type = type, .m = d, .k = 2 + add, .flag = add};
        tile_new(&q, 0, q.k, d * d, 3);
        tile_new(&q, 1, q.k, d * d, 2);
        for (int c = 0; c < q.k; c++) {
          fill_definite(type, matrix_of(&q, 0, c), d);
        }
        trial back = {.type = type, .m = d, .k = q.k, .flag = add};
        tile_new(&back, 0, q.k, d * d, 1);
        tile_new(&back, 1, q.k, d * d, 2);
        tile_new(&back, 2, q.k, d * d, 3);
        for (int c = 0; c < q.k; c++) {
          void *scratch = room(type, PH_CHOLESKY_SCRATCH(d));
          ph_ref_get(type)->cholesky(1, d, matrix_of(&q, 0, c), 0, matrix_of(&back, 0, c), 0, scratch);
          ph_mem_free(scratch);
        }
        /* eigenvalues between 0.5 and about 2: condition 4; its inverse acts twice in the adjoint of d terms */
        trial_run("cholesky", run_cholesky, &q, 2, trial_eps(type) * (8 + d), 0);
        trial_run("cholesky_bwd", run_cholesky_bwd, &back, 4, trial_eps(type) * 4 * (8 + d), 0);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(solve_all_sizes),     PH_TEST(ties_go_to_the_topmost_row),      PH_TEST(symmetric_part_may_be_indefinite),
      PH_TEST(residuals_are_small), PH_TEST(singular_matrices_are_nan_alone), PH_TEST(cholesky_all_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
