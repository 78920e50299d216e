/* inverse: against the pivoted twin, the limits of its accuracy, its residual, its treatment of non-finite matrices. */
#include "kern_trial.h"

/* K = I + S/2 + P with S skew of a given size and P = G G^T: symmetric part >= I. */
static void fill_matrix(ph_dtype type, void *K, int64_t d, double skew, double gram) {
  double *S = ph_mem_new((size_t)(d * d), 8);
  double *G = ph_mem_new((size_t)(d * d), 8);
  for (int64_t i = 0; i < d * d; i++) {
    S[i] = trial_random();
    G[i] = trial_random();
  }
  for (int64_t i = 0; i < d; i++) {
    for (int64_t j = 0; j < d; j++) {
      double v = (i == j) + skew * (S[i * d + j] - S[j * d + i]) / 2;
      for (int64_t p = 0; p < d; p++) {
        v += gram * G[i * d + p] * G[j * d + p] / (double)d;
      }
      set_elem(type, K, i * d + j, v);
    }
  }
  ph_mem_free(S);
  ph_mem_free(G);
}

/* tile 0: one matrix a row; flag: refine, flag2: ask for the residual. Scratch is filled with NaN and guarded by it. */
static void run_inverse(const ph_kern *k, trial *q) {
  const int64_t room = PH_INV_SCRATCH(q->m);
  double resid[8] = {0};
  double *scratch = ph_mem_new((size_t)room + 16, sizeof(double));
  for (int64_t i = 0; i < room + 16; i++) {
    set_elem(q->type, scratch, i, NAN);
  }
  k->inverse(q->k, q->m, q->v[0].at, q->v[0].ld, q->flag, q->flag2 ? resid : NULL, scratch);
  for (int64_t i = room; i < room + 16; i++) {
    assert_true(isnan(elem(q->type, scratch, i)));
  }
  ph_mem_free(scratch);
  for (int64_t c = 0; c < q->k && q->flag2; c++) {
    assert_true(resid[c] >= 0 && resid[c] < 1e4 * trial_eps(q->type));
  }
}

static void try_inverse(ph_dtype type, int64_t d, int64_t count, int refine, int resid, double skew) {
  trial q = {.type = type, .m = d, .k = count, .flag = refine, .flag2 = resid};
  tile_new(&q, 0, count, d * d, 5);
  for (int64_t c = 0; c < count; c++) {
    fill_matrix(type, (char *)q.v[0].at + c * q.v[0].ld * (type == PH_F64 ? 8 : 4), d, skew, 0.3);
  }
  /* norm of the inverse <= 1; growth without pivots of order |S|^2, |S| about skew sqrt d */
  trial_run("inverse", run_inverse, &q, 1, trial_eps(type) * (16 + skew * skew * (double)d), 0);
}

static void inverse_all_sizes(void **state) {
  (void)state;
  static const int sizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 100};
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(sizes); i++) {
      for (int c = 0; c < 4; c++) {
        try_inverse(type, sizes[i], 1 + c % 3, c & 1, c >> 1, 0.5);
      }
    }
  }
}

static double orthogonality(const ph_kern *k, int64_t d, double skew, int refine, double *resid) {
  const size_t size = k->dtype == PH_F64 ? 8 : 4;
  void *K = ph_mem_new((size_t)(d * d), size);
  void *scratch = ph_mem_new((size_t)PH_INV_SCRATCH(d), size);
  double worst = 0;
  fill_matrix(k->dtype, K, d, skew, 0);
  k->inverse(1, d, K, d * d, refine, resid, scratch);
  for (int64_t i = 0; i < d; i++) {
    for (int64_t j = 0; j < d; j++) {
      double s = 0;
      for (int64_t p = 0; p < d; p++) {
        s += (2 * elem(k->dtype, K, p * d + i) - (p == i)) * (2 * elem(k->dtype, K, p * d + j) - (p == j));
      }
      worst = fmax(worst, fabs(s - (i == j)));
    }
  }
  ph_mem_free(K);
  ph_mem_free(scratch);
  return worst;
}

/* C = 2 K^-1 - I is orthogonal for K = I + S/2: as measured, about |S| ulp without the Newton step, few with it. */
static void cayley_of_the_inverse_is_orthogonal(void **state) {
  (void)state;
  static const struct {
    ph_dtype type;
    double skew, plain, refined;
  } rows[] = {
      {PH_F32, 0.1, 5e-6, 3e-6},   {PH_F32, 10, 4e-5, 3e-6},   {PH_F32, 100, 1e-2, 5e-5},
      {PH_F64, 0.1, 5e-15, 5e-15}, {PH_F64, 10, 1e-13, 5e-15}, {PH_F64, 1000, 1e-9, 1e-13},
  };
  for (int i = 0; i < PH_COUNT(rows); i++) {
    for (int d = 16; d <= 64; d *= 2) {
      double r0 = -1;
      double r1 = -1;
      const double plain = orthogonality(ph_kern_get(rows[i].type), d, rows[i].skew, 0, &r0);
      const double refined = orthogonality(ph_kern_get(rows[i].type), d, rows[i].skew, 1, &r1);
      print_message("%s d=%d skew %g: orthogonality %.1e plain, %.1e refined, residual %.1e %.1e\n",
                    rows[i].type == PH_F64 ? "f64" : "f32", d, rows[i].skew, plain, refined, r0, r1);
      assert_true(plain < rows[i].plain && refined < rows[i].refined);
      assert_true(r0 >= 0 && r1 >= 0);
    }
  }
}

/* One bad matrix of five: it becomes NaN as a whole, its neighbours are untouched by it. */
static void nonfinite_matrix_stays_alone(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  EACH_TYPE(type) {
    for (int d = 1; d <= 33; d += 8) {
      for (int b = 0; b < 15; b++) {
        const size_t size = type == PH_F64 ? 8 : 4;
        const ph_kern *k = ph_kern_get(type);
        char *K = ph_mem_new((size_t)(5 * d * d), size);
        char *good = ph_mem_new((size_t)(5 * d * d), size);
        void *scratch = ph_mem_new((size_t)PH_INV_SCRATCH(d), size);
        double resid[5];
        for (int c = 0; c < 5; c++) {
          fill_matrix(type, K + (size_t)(c * d * d) * size, d, 1, 0.1);
        }
        memcpy(good, K, (size_t)(5 * d * d) * size);
        set_elem(type, K, (b % 5) * d * d + (b * 7) % (d * d), bad[b / 5]);
        k->inverse(5, d, K, d * d, b % 2, resid, scratch);
        k->inverse(5, d, good, d * d, b % 2, NULL, scratch);
        for (int c = 0; c < 5; c++) {
          for (int i = 0; i < d * d; i++) {
            if (c == b % 5) {
              assert_true(isnan(elem(type, K, c * d * d + i)));
            } else {
              assert_true(elem(type, K, c * d * d + i) == elem(type, good, c * d * d + i));
            }
          }
        }
        assert_true(isnan(resid[b % 5]));
        ph_mem_free(K);
        ph_mem_free(good);
        ph_mem_free(scratch);
      }
    }
  }
}

/* A matrix gives the same bits alone, in a pair, and as the odd one out; with and without asking for the residual. */
static void inverse_does_not_depend_on_company(void **state) {
  (void)state;
  enum { D = 40, N = D * D };
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    const size_t size = type == PH_F64 ? 8 : 4;
    char *K = ph_mem_new(3 * N, size);
    char *one = ph_mem_new(N, size);
    void *scratch = ph_mem_new((size_t)PH_INV_SCRATCH(D), size);
    double resid[3];
    for (int c = 0; c < 3; c++) {
      fill_matrix(type, K + (size_t)(c * N) * size, D, 1, 0.1);
    }
    char *copy = ph_mem_new(3 * N, size);
    memcpy(copy, K, 3 * N * size);
    k->inverse(3, D, K, N, 0, resid, scratch);
    for (int c = 0; c < 3; c++) {
      memcpy(one, copy + (size_t)(c * N) * size, N * size);
      k->inverse(1, D, one, N, 0, NULL, scratch);
      assert_memory_equal(one, K + (size_t)(c * N) * size, N * size);
    }
    ph_mem_free(K);
    ph_mem_free(one);
    ph_mem_free(copy);
    ph_mem_free(scratch);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(inverse_all_sizes),
      PH_TEST(cayley_of_the_inverse_is_orthogonal),
      PH_TEST(nonfinite_matrix_stays_alone),
      PH_TEST(inverse_does_not_depend_on_company),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
