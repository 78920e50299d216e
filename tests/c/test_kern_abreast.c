/* What float64 alone has: normal numbers in bulk, and eight small problems abreast. Layout of all tiles: (.., 8). */
#include "kern_trial.h"

static const int64_t widths[] = {0, 4, 8, 12, 32, 64};

/* ---- numbers: bit for bit those of ph_rng_normal ---- */

static void run_normal(const ph_kern *k, trial *q) {
  k->normal(ph_rng_of(7, "laws.A"), (1ull << 33) - 2 + (uint64_t)q->k, q->a, q->n, q->v[0].at);
}

static void numbers_in_bulk_are_those_one_by_one(void **state) {
  (void)state;
  for (int n = 0; n < 70; n++) {
    for (int first = 0; first < 5; first++) { /* across a carry of the counter, from even and from odd numbers on */
      trial q = {.type = PH_F64, .n = n, .k = first, .a = 0.3};
      tile_new(&q, 0, 1, n, 0);
      trial_run("normal", run_normal, &q, 1, 0, 0);
    }
  }
}

static void no_range_of_numbers_is_special(void **state) {
  (void)state;
  static double x[300];
  const ph_kern *k = ph_kern_get(PH_F64);
  ph_rng r = ph_rng_of(7, "laws.A");
  for (uint64_t first = 0; first < 3000000; first += 300) { /* tails included */
    k->normal(r, first, 1, 300, x);
    double one = ph_rng_normal(r, first + first % 300);
    assert_memory_equal(&one, &x[first % 300], sizeof one);
  }
}

static void run_normal8(const ph_kern *k, trial *q) {
  k->normal8(ph_rng_of(8, "laws.B"), 5, (uint64_t)q->k, q->a, q->m / 2, q->v[0].at);
}

static void numbers_abreast_are_those_of_their_streams(void **state) {
  (void)state;
  for (int pairs = 0; pairs < 10; pairs++) {
    trial q = {.type = PH_F64, .m = 2 * pairs, .k = 1000, .a = 2};
    tile_new(&q, 0, 2 * pairs, 8, 0);
    trial_run("normal8", run_normal8, &q, 1, 0, 0);
  }
}

/* ---- systems: tile 0 the matrices, tile 1 the vectors ---- */

static _Alignas(64) double scratch[PH_ABREAST * PH_ABREAST_WIDTH * PH_ABREAST_WIDTH];

static void run_cayley8(const ph_kern *k, trial *q) { k->cayley8(q->m, q->v[0].at, scratch, q->v[1].at); }

static void a_rotation_abreast(void **state) {
  (void)state;
  for (int w = 0; w < PH_COUNT(widths); w++) {
    const int64_t d = widths[w];
    trial q = {.type = PH_F64, .m = d};
    tile_new(&q, 0, d * (d - 1) / 2, 8, 0);
    tile_new(&q, 1, d, 8, 0);
    /* |C| = 1; growth without pivots of order |S|^2, |S| about sqrt d */
    trial_run("cayley8", run_cayley8, &q, 2, 0x1p-52 * 16 * (16 + (double)d), 0);
  }
}

static void run_damp8(const ph_kern *k, trial *q) { k->damp8(q->m, q->v[2].at, q->v[3].at, scratch, q->v[1].at); }

/* R = L L^T by the twin, steps of both sizes. */
static void a_damping_abreast(void **state) {
  (void)state;
  for (int w = 0; w < PH_COUNT(widths); w++) {
    const int64_t d = widths[w];
    trial q = {.type = PH_F64, .m = d};
    tile_new(&q, 0, d * d, 8, 0);
    tile_new(&q, 1, d, 8, 0);
    tile_new(&q, 2, d * d, 8, 0);
    tile_new(&q, 3, 1, 8, 0);
    double sums[16];
    ph_ref_get(PH_F64)->gram8(d, q.v[0].at, q.v[2].at, sums, sums + 8);
    for (int l = 0; l < 8; l++) {
      tile_set(&q, 3, 0, l, 0.01 * (1 << l));
    }
    /* |Lambda| <= 1; the condition of I + half R is at most 1 + 1.28 * 4 d / 3 */
    trial_run("damp8", run_damp8, &q, 2, 0x1p-52 * 16 * (16 + 2 * (double)d), 0);
  }
}

static void run_gram8(const ph_kern *k, trial *q) { k->gram8(q->m, q->v[0].at, q->v[1].at, q->v[2].at, q->v[3].at); }

static void run_gemv8(const ph_kern *k, trial *q) { k->gemv8(q->m, q->v[0].at, q->v[1].at, q->v[2].at); }

static void run_norm8(const ph_kern *k, trial *q) { k->norm8(q->m, q->v[0].at, q->v[1].at); }

static void sums_abreast(void **state) {
  (void)state;
  for (int w = 0; w < PH_COUNT(widths); w++) {
    const int64_t d = widths[w];
    const double rounding = 0x1p-52 * (double)d; /* of a sum of d products up to 1 */
    trial gram = {.type = PH_F64, .m = d};
    tile_new(&gram, 0, d * d, 8, 0);
    tile_new(&gram, 1, d * d, 8, 0);
    tile_new(&gram, 2, 1, 8, 0);
    tile_new(&gram, 3, 1, 8, 0);
    trial_run("gram8", run_gram8, &gram, 14, rounding, 2 * rounding);
    trial gemv = {.type = PH_F64, .m = d};
    tile_new(&gemv, 0, d * d, 8, 0);
    tile_new(&gemv, 1, d, 8, 0);
    tile_new(&gemv, 2, d, 8, 0);
    trial_run("gemv8", run_gemv8, &gemv, 4, rounding, 0);
    trial norm = {.type = PH_F64, .m = d};
    tile_new(&norm, 0, d, 8, 0);
    tile_new(&norm, 1, 1, 8, 0);
    trial_run("norm8", run_norm8, &norm, 2, 0, 0x1p-52 + rounding);
  }
}

/* The squares of 1e200 overflow, those of 1e-200 vanish; a NaN stays in its own problem. */
static void norms_abreast_are_scaled(void **state) {
  (void)state;
  trial q = {.type = PH_F64, .m = 4};
  tile_new(&q, 0, 4, 8, 0);
  tile_new(&q, 1, 1, 8, 0);
  for (int i = 0; i < 4; i++) {
    tile_set(&q, 0, i, 0, 1e200);
    tile_set(&q, 0, i, 1, 1e-200);
    tile_set(&q, 0, i, 2, 0);
  }
  tile_set(&q, 0, 1, 3, NAN);
  trial_run("norm8", run_norm8, &q, 2, 0, 0x1p-50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(numbers_in_bulk_are_those_one_by_one),
      PH_TEST(no_range_of_numbers_is_special),
      PH_TEST(numbers_abreast_are_those_of_their_streams),
      PH_TEST(a_rotation_abreast),
      PH_TEST(a_damping_abreast),
      PH_TEST(sums_abreast),
      PH_TEST(norms_abreast_are_scaled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
