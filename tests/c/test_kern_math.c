/* Accuracy of the own elementary functions, in units in the last place of the right value, over the whole range. */
#include "kern_trial.h"
#include "ref_act.h"

enum { CHUNK = 1024 };

/* Distance in units in the last place of a float32 or float64 near `want`; denormals count in their fixed unit. */
static double ulps(ph_dtype type, long double want, double got) {
  int e;
  if ((long double)got == want || (isnan(got) && isnan(want))) {
    return 0;
  }
  if (isnan(got) || isnan(want)) {
    return INFINITY;
  }
  frexpl(want, &e);
  e = type == PH_F64 ? (e - 53 < -1074 ? -1074 : e - 53) : (e - 24 < -149 ? -149 : e - 24);
  return (double)fabsl(ldexpl((long double)got - want, -e));
}

/* Worst error over a chunk of arguments. */
static double chunk_worst(const ph_kern *k, ph_act f, const void *x, void *y, int n) {
  double worst = 0;
  k->act(f, 1, n, x, n, y, n);
  for (int i = 0; i < n; i++) {
    const double e = ulps(k->dtype, ph_ref_act(f, (long double)elem(k->dtype, x, i)), elem(k->dtype, y, i));
    worst = e > worst ? e : worst;
  }
  return worst;
}

/* Every `stride`-th float32 pattern up to `top`, both signs: all magnitudes, denormals too. */
static double sweep_f32(const ph_kern *k, ph_act f, float top, uint32_t stride) {
  float x[CHUNK];
  float y[CHUNK];
  double worst = 0;
  uint32_t end;
  memcpy(&end, &top, 4);
  for (uint32_t u = 0; u < end;) {
    int n = 0;
    for (; n + 1 < CHUNK && u < end; u += stride) {
      memcpy(&x[n], &u, 4);
      x[n + 1] = -x[n];
      n += 2;
    }
    const double e = chunk_worst(k, f, x, y, n);
    worst = e > worst ? e : worst;
  }
  return worst;
}

/* Random float64 of magnitude 2^-40 .. top, uniform in the logarithm and uniform, both signs. */
static double sweep_f64(const ph_kern *k, ph_act f, double top, int chunks) {
  double x[CHUNK];
  double y[CHUNK];
  double worst = 0;
  for (int c = 0; c < chunks; c++) {
    for (int i = 0; i < CHUNK; i++) {
      const double u = trial_random();
      x[i] = c % 2 ? u * top : copysign(top * exp2(-20 * (1 + trial_random())), u);
    }
    const double e = chunk_worst(k, f, x, y, CHUNK);
    worst = e > worst ? e : worst;
  }
  return worst;
}

/* Worst error of every table in float32 and float64 up to the given magnitudes. */
static void check_accuracy(ph_act f, float top32, double top64, double ulp) {
  static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
  for (int t = 0; t < PH_COUNT(names); t++) {
    const ph_kern *k32 = ph_kern_find(PH_F32, names[t]);
    const ph_kern *k64 = ph_kern_find(PH_F64, names[t]);
    if (!k32) {
      continue;
    }
    const double e32 = sweep_f32(k32, f, top32, 10007);
    const double e64 = sweep_f64(k64, f, top64, 100);
    print_message("%-9s %-8s worst error %.2f ulp float32, %.2f ulp float64\n", ph_act_name(f), names[t], e32, e64);
    assert_true(e32 <= ulp);
    assert_true(e64 <= ulp);
  }
}

/* Every function where no factor of any of them is denormal. */
static void functions_are_accurate(void **state) {
  (void)state;
  for (int f = 0; f < PH_ACT_COUNT; f++) {
    check_accuracy((ph_act)f, 12.9f, 37, 6);
  }
}

/* The bounds that isa_math.h documents, over their whole range; silu ends where its second factor is denormal. */
static void documented_bounds_hold(void **state) {
  (void)state;
  check_accuracy(PH_ACT_TANH, 1e30f, 40, 2.5);
  check_accuracy(PH_ACT_SIGMOID, 110, 760, 3);
  check_accuracy(PH_ACT_SOFTPLUS, 1e30f, 760, 3.5);
  check_accuracy(PH_ACT_SILU, 87, 708, 4);
  check_accuracy(PH_ACT_EXP, 88.7f, 709.7, 1);
  check_accuracy(PH_ACT_LOG, 3e38f, 4, 1);
  check_accuracy(PH_ACT_LOG, 4, 1e308, 1);
  check_accuracy(PH_ACT_SIN, 3e38f, 1e6, 2.5);
  check_accuracy(PH_ACT_SIN, 10, 1e308, 2.5);
  check_accuracy(PH_ACT_COS, 3e38f, 1e6, 2.5);
  check_accuracy(PH_ACT_COS, 10, 1e308, 2.5);
}

/* |tanh| <= 1 for every argument, odd, monotone enough to be exactly 1 at the end: the port bound rests on it. */
static void tanh_is_bounded_and_odd(void **state) {
  (void)state;
  const ph_kern *k = ph_kern_get(PH_F32);
  float x[CHUNK];
  float y[CHUNK];
  for (uint32_t u = 0x40000000; u < 0x7f800000; u += 977 * CHUNK) {
    for (uint32_t i = 0; i < CHUNK; i++) {
      const uint32_t v = (u + i / 2) | (i % 2 ? 0x80000000 : 0);
      memcpy(&x[i], &v, 4);
    }
    k->act(PH_ACT_TANH, 1, CHUNK, x, CHUNK, y, CHUNK);
    for (int i = 0; i < CHUNK; i += 2) {
      if (isnan(x[i])) {
        continue;
      }
      assert_true(y[i] <= 1 && y[i] == -y[i + 1]);
      assert_true(x[i] < 9.1f || y[i] == 1);
    }
  }
  const float zero[2] = {0.0f, -0.0f};
  k->act(PH_ACT_TANH, 1, 2, zero, 2, y, 2);
  assert_true(y[0] == 0 && !signbit(y[0]) && signbit(y[1]));
}

/* Where sine and cosine are hard: next to multiples of pi/2, and at Kahan's worst case of all float64. */
static void sine_next_to_its_zeros_is_accurate(void **state) {
  (void)state;
  static const ph_act act[] = {PH_ACT_SIN, PH_ACT_COS};
  const double worst_case = ldexp(6381956970095103, 797);
  for (int f = 0; f < 2; f++) {
    for (int64_t n = 1; n < 700000; n += 37 * CHUNK) {
      double x[CHUNK];
      double y[CHUNK];
      float x32[CHUNK];
      float y32[CHUNK];
      for (int i = 0; i < CHUNK; i++) {
        x[i] = i ? (double)((long double)(n + 37 * i) * acosl(-1) / 2) : worst_case;
        x32[i] = (float)x[i];
      }
      assert_true(chunk_worst(ph_kern_get(PH_F64), act[f], x, y, CHUNK) <= 2.5);
      assert_true(chunk_worst(ph_kern_get(PH_F32), act[f], x32, y32, CHUNK) <= 2.5);
    }
  }
}

/* What exp, log, sin, cos give at the ends of their ranges, by their definition. */
static void ends_of_ranges(void **state) {
  (void)state;
  static const struct {
    ph_act f;
    double x, y;
  } rows[] = {
      {PH_ACT_EXP, -INFINITY, 0},
      {PH_ACT_EXP, INFINITY, INFINITY},
      {PH_ACT_EXP, 1e6, INFINITY},
      {PH_ACT_EXP, -1e6, 0},
      {PH_ACT_EXP, 0, 1},
      {PH_ACT_EXP, NAN, NAN},
      {PH_ACT_LOG, 0, -INFINITY},
      {PH_ACT_LOG, -0.0, -INFINITY},
      {PH_ACT_LOG, -1, NAN},
      {PH_ACT_LOG, 1, 0},
      {PH_ACT_LOG, INFINITY, INFINITY},
      {PH_ACT_LOG, NAN, NAN},
      {PH_ACT_SIN, -0.0, -0.0},
      {PH_ACT_SIN, 0, 0},
      {PH_ACT_SIN, INFINITY, NAN},
      {PH_ACT_SIN, NAN, NAN},
      {PH_ACT_COS, 0, 1},
      {PH_ACT_COS, -INFINITY, NAN},
      {PH_ACT_COS, NAN, NAN},
      {PH_ACT_ABS, -INFINITY, INFINITY},
      {PH_ACT_ABS, -0.0, 0},
      {PH_ACT_ABS, NAN, NAN},
      {PH_ACT_SQUARE, -3, 9},
      {PH_ACT_SQUARE, NAN, NAN},
  };
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(rows); i++) {
      double x[17];
      double y[17];
      for (int j = 0; j < 17; j++) { /* a whole vector and a tail */
        set_elem(type, x, j, rows[i].x);
      }
      ph_kern_get(type)->act(rows[i].f, 1, 17, x, 17, y, 17);
      for (int j = 0; j < 17; j++) {
        const double got = elem(type, y, j);
        assert_true(isnan(rows[i].y) ? isnan(got) : got == rows[i].y && !signbit(got) == !signbit(rows[i].y));
      }
    }
  }
}

/* The logarithm in the loss, through two logits: ln(1 + e^-x). */
static void loss_logarithm_is_accurate(void **state) {
  (void)state;
  const ph_kern *k = ph_kern_get(PH_F64);
  const int32_t label = 0;
  for (double x = 0; x < 30; x += 0.01) {
    const double logits[2] = {0, -x};
    double loss;
    int32_t hit;
    k->softmax_ce(1, 2, logits, 2, &label, 0, NULL, 1, &loss, &hit, NULL, 0);
    ph_near((double)logl(1 + expl(-(long double)x)), loss, 3e-16, 4e-16,
            "rounding of 1 + e and two ulp of the logarithm");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(functions_are_accurate),  PH_TEST(documented_bounds_hold),
      PH_TEST(tanh_is_bounded_and_odd), PH_TEST(sine_next_to_its_zeros_is_accurate),
      PH_TEST(ends_of_ranges),          PH_TEST(loss_logarithm_is_accurate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
