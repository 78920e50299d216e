#include "ph_test.h"

#include "base/rng.h"

/* kat_vectors of Random123 1.09, "philox4x32 10". */
static void philox_known_answers(void **state) {
  (void)state;
  static const uint32_t kat[][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
       0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
       0x24126ea1},
  };
  for (int i = 0; i < PH_COUNT(kat); i++) {
    uint32_t out[4];
    ph_rng_philox(kat[i], kat[i] + 4, out);
    assert_memory_equal(kat[i] + 6, out, sizeof out);
  }
  uint32_t out[4];
  ph_rng_block((ph_rng){{0, 0}}, 0, out);
  assert_memory_equal(kat[0] + 6, out, sizeof out);
}

/* Computed once with this code: the bits of a stream must never change, results of old runs hang on them. */
static void streams_are_pinned(void **state) {
  (void)state;
  ph_rng r = ph_rng_of(7, "layer.A");
  assert_true(ph_rng_u64(r, 0) == 0xe4620a455f02b8edu);
  assert_true(ph_rng_u64(r, 1000001) == 0xc82162e229c7682fu);
  assert_true(ph_rng_normal(r, 0) == 0x1.e842dc3b42f0cp-2);
  assert_true(ph_rng_normal(r, 1000001) == -0x1.e8ce02acc8444p-3);
}

static void seed_and_name_choose_the_stream(void **state) {
  (void)state;
  static const struct {
    uint64_t seed;
    const char *name;
  } keys[] = {{0, ""},  {0, "A"},          {1, "A"},
              {0, "B"}, {0, "AB"},         {0, "BA"},
              {1, ""},  {UINT64_MAX, "A"}, {(uint64_t)1 << 32, "A"}};
  for (int i = 0; i < PH_COUNT(keys); i++) {
    for (int j = 0; j < i; j++) {
      ph_rng a = ph_rng_of(keys[i].seed, keys[i].name);
      ph_rng b = ph_rng_of(keys[j].seed, keys[j].name);
      assert_true(ph_rng_u64(a, 0) != ph_rng_u64(b, 0));
    }
  }
}

static void log_agrees_with_libm(void **state) {
  (void)state;
  ph_rng r = ph_rng_of(1, "log");
  for (int i = 0; i < 200000; i++) {
    double u = (ph_rng_uniform(r, (uint64_t)i) + 0x1p-53) * (i % 3 ? 1 : 0x1p-40);
    ph_near(log(u), ph_rng_log(u), 1e-16, 4e-16, "two roundings of the sum");
  }
  ph_near(log(0x1p-53), ph_rng_log(0x1p-53), 0, 4e-16, "smallest value that occurs");
  ph_near(log1p(-0x1p-53), ph_rng_log(1 - 0x1p-53), 0, 4e-16, "no cancellation next to 1");
  ph_near(log(1e300), ph_rng_log(1e300), 0, 4e-16, "far from 1");
  assert_true(ph_rng_log(1) == 0);
}

static void turn_agrees_with_libm(void **state) {
  (void)state;
  const double tau = 0x1.921fb54442d18p+2;
  ph_rng r = ph_rng_of(1, "turn");
  for (int i = 0; i < 200000; i++) {
    double u = ph_rng_uniform(r, (uint64_t)i);
    double s;
    double c;
    ph_rng_turn(u, &s, &c);
    ph_near(sin(tau * u), s, 1e-15, 0, "libm sees the rounded angle: 2 pi eps/2, and its own eps");
    ph_near(cos(tau * u), c, 1e-15, 0, "as for the sine");
    ph_near(1, s * s + c * c, 4e-16, 0, "a point of the unit circle");
  }
  static const double exact[][3] = {{0, 0, 1}, {0.25, 1, 0}, {0.5, 0, -1}, {0.75, -1, 0}, {1, 0, 1}};
  for (int i = 0; i < PH_COUNT(exact); i++) {
    double s;
    double c;
    ph_rng_turn(exact[i][0], &s, &c);
    assert_true(s == exact[i][1] && c == exact[i][2]);
  }
}

static void uniform_is_uniform(void **state) {
  (void)state;
  enum { N = 1 << 20, BINS = 64 };
  ph_rng r = ph_rng_of(3, "uniform");
  int count[BINS] = {0};
  double sum = 0;
  double square = 0;
  double lag = 0;
  double last = 0;
  for (uint64_t i = 0; i < N; i++) {
    double u = ph_rng_uniform(r, i);
    assert_true(u >= 0 && u < 1);
    count[(int)(u * BINS)]++;
    sum += u;
    square += u * u;
    lag += (u - 0.5) * last;
    last = u - 0.5;
  }
  ph_near(0.5, sum / N, 5 * sqrt(1.0 / 12 / N), 0, "5 sigma of the mean");
  ph_near(1.0 / 3, square / N, 5 * sqrt(4.0 / 45 / N), 0, "5 sigma of the second moment");
  ph_near(0, lag / N, 5 * (1.0 / 12) / sqrt(N), 0, "5 sigma of the lag-1 covariance");
  double chi2 = 0;
  for (int b = 0; b < BINS; b++) {
    chi2 += pow(count[b] - N / BINS, 2) / (N / BINS);
  }
  ph_near(BINS - 1, chi2, 5 * sqrt(2.0 * (BINS - 1)), 0, "5 sigma of chi-square");
}

static void normal_has_its_moments_and_tails(void **state) {
  (void)state;
  enum { N = 1 << 20 };
  ph_rng r = ph_rng_of(4, "normal");
  double m[5] = {0};
  double pair = 0;
  double even = 0;
  int beyond[3] = {0};
  for (uint64_t i = 0; i < N; i++) {
    double z = ph_rng_normal(r, i);
    for (int k = 1; k <= 4; k++) {
      m[k] += pow(z, k) / N;
    }
    for (int k = 0; k < 3; k++) {
      beyond[k] += fabs(z) > k + 1;
    }
    if (i % 2) {
      pair += z * even / (N / 2);
    }
    even = z;
  }
  ph_near(0, m[1], 5 / sqrt(N), 0, "5 sigma of the mean");
  ph_near(1, m[2], 5 * sqrt(2.0 / N), 0, "5 sigma of the variance");
  ph_near(0, m[3], 5 * sqrt(15.0 / N), 0, "5 sigma of the third moment");
  ph_near(3, m[4], 5 * sqrt(96.0 / N), 0, "5 sigma of the fourth moment");
  ph_near(0, pair, 5 / sqrt(N / 2), 0, "5 sigma: the two of a pair are uncorrelated");
  for (int k = 0; k < 3; k++) {
    double p = erfc((k + 1) / sqrt(2));
    ph_near(p, (double)beyond[k] / N, 5 * sqrt(p / N), 0, "5 sigma of the tail");
  }
}

static void fill_equals_single_numbers(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 65};
  ph_rng r = ph_rng_of(5, "fill");
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    for (uint64_t first = 0; first < 4; first++) {
      for (int dtype = PH_F32; dtype <= PH_F64; dtype++) {
        ph_tensor *t = NULL;
        ph_tensor *u = NULL;
        ph_ok(ph_tensor_new(&t, (ph_dtype)dtype, 1, sizes + s, NULL));
        ph_ok(ph_tensor_new(&u, (ph_dtype)dtype, 1, sizes + s, NULL));
        ph_rng_fill_normal(r, first, 0.3, t);
        ph_rng_fill_uniform(r, first, 0.3, u);
        for (int64_t k = 0; k < sizes[s]; k++) {
          double z = 0.3 * ph_rng_normal(r, first + (uint64_t)k);
          double v = 0.3 * (2 * ph_rng_uniform(r, first + (uint64_t)k) - 1);
          assert_true(ph_tensor_get(t, k) == (dtype == PH_F32 ? (double)(float)z : z));
          assert_true(ph_tensor_get(u, k) == (dtype == PH_F32 ? (double)(float)v : v));
        }
        ph_tensor_free(t);
        ph_tensor_free(u);
      }
    }
  }
}

static void permutations_are_permutations(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 3, 17, 1000};
  ph_rng r = ph_rng_of(6, "perm");
  for (int s = 0; s < PH_COUNT(sizes); s++) {
    int32_t perm[1000];
    bool seen[1000] = {false};
    ph_rng_permutation(r, 0, perm, sizes[s]);
    for (int64_t k = 0; k < sizes[s]; k++) {
      assert_true(perm[k] >= 0 && perm[k] < sizes[s] && !seen[perm[k]]);
      seen[perm[k]] = true;
    }
  }
}

static void permutations_are_uniform(void **state) {
  (void)state;
  enum { N = 24000 };
  int count[24] = {0};
  for (uint64_t i = 0; i < N; i++) {
    int32_t p[4];
    ph_rng_permutation(ph_rng_of(8, "perm4"), 100 * i, p, 4);
    int later[4] = {0};
    for (int a = 0; a < 4; a++) {
      for (int b = a + 1; b < 4; b++) {
        later[a] += p[b] < p[a];
      }
    }
    count[later[0] * 6 + later[1] * 2 + later[2]]++;
  }
  for (int k = 0; k < 24; k++) {
    ph_near(N / 24, count[k], 5 * sqrt(N / 24.0), 0, "5 sigma of a count");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(philox_known_answers),
      PH_TEST(streams_are_pinned),
      PH_TEST(seed_and_name_choose_the_stream),
      PH_TEST(log_agrees_with_libm),
      PH_TEST(turn_agrees_with_libm),
      PH_TEST(uniform_is_uniform),
      PH_TEST(normal_has_its_moments_and_tails),
      PH_TEST(fill_equals_single_numbers),
      PH_TEST(permutations_are_permutations),
      PH_TEST(permutations_are_uniform),
  };
  return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
