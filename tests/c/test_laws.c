#include "ph_test.h"

#include "base/la.h"
#include "base/pool.h"
#include "laws/laws.h"

static ph_laws_random config(int64_t width, int64_t inputs) {
  return (ph_laws_random){.seed = 3,
                          .streams = 11,
                          .inputs = inputs,
                          .depth = 6,
                          .width = width,
                          .step = 0.2,
                          .transport = 0.7,
                          .damping = 0.9,
                          .port = 0.5,
                          .control = 0.2,
                          .budget = 1};
}

/* Side by side (one input) and one by one (two inputs, the first of them) must tell the same story where their numbers coincide: with the
 * port closed the start alone decides, and with u shared the layers are the same. */
static void side_by_side_equals_one_by_one(void **state) {
  (void)state;
  ph_pool *pool;
  ph_err err = {0};
  ph_ok(ph_pool_new(&pool, 1, &err));
  ph_laws_random one = config(8, 1);
  one.streams = 1; /* starts at the same number in both */
  one.port = 0;
  ph_laws_random two = one;
  two.inputs = 2;
  double norm1[7];
  double bound1[7];
  double norm2[14];
  double bound2[14];
  int64_t guarded1;
  int64_t guarded2;
  ph_ok(ph_laws_conserve(&one, pool, norm1, bound1, &guarded1, &err));
  ph_ok(ph_laws_conserve(&two, pool, norm2, bound2, &guarded2, &err));
  assert_int_equal(guarded1, guarded2);
  for (int t = 0; t <= 6; t++) {
    ph_near(norm2[t], norm1[t], 0, 1e-13, "a solve against an inverse, six layers");
    ph_near(bound2[t], bound1[t], 0, 1e-15,
            "no port: the ceiling stays at the norm of the start, added up in two ways");
  }
  ph_pool_free(pool);
}

static void bits_do_not_depend_on_threads(void **state) {
  (void)state;
  enum { N = 11 * 2 * 7 };
  static double a[N];
  static double b[N];
  static double c[N];
  static double d[N];
  for (int inputs = 1; inputs <= 2; inputs++) {
    ph_laws_random q = config(8, inputs);
    for (int threads = 1; threads <= 3; threads += 2) {
      ph_pool *pool;
      ph_err err = {0};
      ph_ok(ph_pool_new(&pool, threads, &err));
      ph_ok(ph_laws_conserve(&q, pool, threads == 1 ? a : c, threads == 1 ? b : d, NULL, &err));
      ph_pool_free(pool);
    }
    assert_memory_equal(a, c, sizeof(double) * 11 * (size_t)inputs * 7);
    assert_memory_equal(b, d, sizeof(double) * 11 * (size_t)inputs * 7);
  }
}

static void norms_stay_below_the_ceiling_and_reach_it(void **state) {
  (void)state;
  enum { STREAMS = 40, DEPTH = 50 };
  static double norm[STREAMS * (DEPTH + 1)];
  static double bound[STREAMS * (DEPTH + 1)];
  ph_pool *pool;
  ph_err err = {0};
  ph_ok(ph_pool_new(&pool, 2, &err));
  ph_laws_random c = config(16, 1);
  c.streams = STREAMS;
  c.depth = DEPTH;
  ph_ok(ph_laws_conserve(&c, pool, norm, bound, NULL, &err));
  for (int i = 0; i < STREAMS * (DEPTH + 1); i++) {
    assert_true(norm[i] <= bound[i] * (1 + 1e-12));
  }
  /* Nothing is lost and nothing enters: the ceiling is attained. */
  c.damping = 0;
  c.port = 0;
  ph_ok(ph_laws_conserve(&c, pool, norm, bound, NULL, &err));
  for (int i = 0; i < STREAMS * (DEPTH + 1); i++) {
    ph_near(bound[i], norm[i], 0, 1e-13, "fifty rotations");
  }
  ph_pool_free(pool);
}

static void a_graded_spectrum_is_exact_beyond_the_range_of_the_product(void **state) {
  (void)state;
  enum { L = 200 };
  static double M[L][3][3];
  ph_pool *pool;
  ph_err err = {0};
  ph_ok(ph_pool_new(&pool, 1, &err));
  for (int t = 0; t < L; t++) { /* diag(100, 1, 1/1000): the product overflows at 10^400 */
    M[t][0][0] = 100;
    M[t][1][1] = 1;
    M[t][2][2] = 1e-3;
  }
  double logs[3];
  double change;
  ph_ok(ph_laws_spectrum(1, L, 3, &M[0][0][0], 4, pool, logs, &change, &err));
  ph_near(L * log(100), logs[0], 0, 1e-14, "sum of logarithms");
  ph_near(0, logs[1], 1e-12, 0, "sum of logarithms");
  ph_near(L * log(1e-3), logs[2], 0, 1e-14, "sum of logarithms");
  M[7][1][1] = NAN;
  ph_fails(PH_E_NONFINITE, "factor 8 of product 1",
           ph_laws_spectrum(1, L, 3, &M[0][0][0], 4, pool, logs, &change, &err), err);
  ph_fails(PH_E_ARG, "at least one", ph_laws_spectrum(1, 0, 3, &M[0][0][0], 4, pool, logs, &change, &err), err);
  ph_pool_free(pool);
}

static ph_status run_once(const ph_laws_random *c, ph_pool *pool) {
  static double a[200];
  static double b[200];
  ph_err err;
  return ph_laws_conserve(c, pool, a, b, NULL, &err);
}

static void failures_leave_nothing_behind(void **state) {
  (void)state;
  ph_pool *pool;
  ph_err err = {0};
  ph_ok(ph_pool_new(&pool, 1, &err));
  for (int inputs = 1; inputs <= 2; inputs++) {
    ph_laws_random c = config(8, inputs);
    ph_each_failed_allocation(run_once(&c, pool));
  }
  ph_laws_random c = config(8, 1);
  double x[200];
  c.step = -1;
  ph_fails(PH_E_ARG, "step = -1", ph_laws_control(&c, pool, x, &err), err);
  c = config(8, 1);
  c.damping = 1e150; /* the squares of R overflow; its eigenvalue, and with it the guard, does not */
  int64_t guarded = 0;
  ph_ok(ph_laws_conserve(&c, pool, x, x + 100, &guarded, &err));
  assert_int_equal(11 * 6, guarded);
  for (int i = 0; i < 77; i++) {
    assert_true(x[i] <= x[100 + i] * (1 + 1e-12));
  }
  ph_interrupt_set(1);
  c = config(8, 2);
  static double y[400];
  ph_fails(PH_E_INTERRUPTED, "interrupted", ph_laws_conserve(&c, pool, y, y + 200, NULL, &err), err);
  ph_interrupt_set(0);
  ph_pool_free(pool);
}

static int start_la(void **state) {
  (void)state;
  ph_la_info info;
  return ph_la_start(&info, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(side_by_side_equals_one_by_one),
      PH_TEST(bits_do_not_depend_on_threads),
      PH_TEST(norms_stay_below_the_ceiling_and_reach_it),
      PH_TEST(a_graded_spectrum_is_exact_beyond_the_range_of_the_product),
      PH_TEST(failures_leave_nothing_behind),
  };
  return cmocka_run_group_tests(tests, start_la, NULL);
}
