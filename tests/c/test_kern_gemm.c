/* gemm and transpose: every table against the twin over all sizes, strides, initial values and bias. */
#include "kern_trial.h"

/* tiles: 0 A (or A^T as stored), 1 B, 2 D, 3 bias, 4 C; flag: 1 transposed, 2 D, 4 bias, 8 D is C */
static void run_gemm(const ph_kern *k, trial *q) {
  const tile *A = &q->v[0];
  const tile *B = &q->v[1];
  const tile *D = q->flag & 8 ? &q->v[4] : &q->v[2];
  const tile *C = &q->v[4];
  const int64_t ra = q->flag & 1 ? 1 : A->ld;
  const int64_t ca = q->flag & 1 ? A->ld : 1;
  k->gemm(q->m, q->n, q->k, A->at, ra, ca, B->at, B->ld, q->flag & 10 ? D->at : NULL, D->ld,
          q->flag & 4 ? q->v[3].at : NULL, C->at, C->ld);
}

static void try_gemm(ph_dtype type, int64_t m, int64_t n, int64_t k, int flag) {
  trial q = {.type = type, .m = m, .n = n, .k = k, .flag = flag};
  if (flag & 1) {
    tile_new(&q, 0, k, m, 3);
  } else {
    tile_new(&q, 0, m, k, 5);
  }
  tile_new(&q, 1, k, n, 1);
  tile_new(&q, 2, m, n, 7);
  tile_new(&q, 3, 1, n, 0);
  tile_new(&q, 4, m, n, 2);
  /* one rounding of half an eps per term, of partial sums that random signs keep near sqrt k */
  trial_run("gemm", run_gemm, &q, 1u << 4, trial_eps(type) * (double)(k + 2), 0);
}

static void gemm_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) EACH_SIZE(k) try_gemm(type, m, n, k, (m + 3 * n + 5 * k) % 16);
}

static void gemm_all_flags(void **state) {
  (void)state;
  static const int sizes[][3] = {{5, 40, 9},    {64, 32, 32},  {31, 96, 16}, {128, 64, 33},
                                 {13, 128, 64}, {50, 11, 100}, {97, 30, 20}};
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(sizes); i++) {
      for (int flag = 0; flag < 16; flag++) {
        try_gemm(type, sizes[i][0], sizes[i][1], sizes[i][2], flag);
      }
    }
  }
}

/* Every height of a block of rows, every number of vectors. */
static void gemm_all_blocks(void **state) {
  (void)state;
  EACH_TYPE(type) {
    for (int m = 1; m <= 34; m++) {
      for (int n = 1; n <= 84; n += 3) {
        try_gemm(type, m, n, 3, (m + n) % 16);
      }
    }
  }
}

/* The order of the sum is part of the contract: ((D + bias) + a0 b0) + a1 b1. */
static void gemm_adds_in_order(void **state) {
  (void)state;
  const float A[3] = {1, 1, 1};
  const float B[3] = {-0x1p24f, 1, 1};
  const float D = 0x1p24f;
  const float bias = 1;
  float C = 0;
  /* 2^24 + 1 rounds to 2^24, minus 2^24 is 0, plus 1 plus 1 is 2; any other order gives another number */
  ph_kern_get(PH_F32)->gemm(1, 1, 3, A, 3, 1, B, 1, &D, 1, &bias, &C, 1);
  assert_true(C == 2);
}

static void gemm_passes_nan_on(void **state) {
  (void)state;
  trial q = {.type = PH_F32, .m = 17, .n = 33, .k = 7};
  tile_new(&q, 0, 17, 7, 0);
  tile_new(&q, 1, 7, 33, 0);
  tile_new(&q, 2, 17, 33, 0);
  tile_new(&q, 3, 1, 33, 0);
  tile_new(&q, 4, 17, 33, 0);
  tile_set(&q, 0, 5, 3, NAN);
  tile_set(&q, 1, 2, 32, INFINITY);
  trial_run("gemm", run_gemm, &q, 1u << 4, 1e-5, 0);
}

static void run_transpose(const ph_kern *k, trial *q) {
  k->transpose(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld);
}

static void transpose_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) {
    trial q = {.type = type, .m = m, .n = n};
    tile_new(&q, 0, m, n, 3);
    tile_new(&q, 1, n, m, 2);
    trial_run("transpose", run_transpose, &q, 2, 0, 0);
  }
}

static void run_skew(const ph_kern *k, trial *q) {
  k->skew(q->k, q->m, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld);
}

static void skew_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(d) for (int count = 0; count < 4; count++) {
    trial q = {.type = type, .m = d, .k = count};
    tile_new(&q, 0, count, (int64_t)d * d, 3);
    tile_new(&q, 1, count, (int64_t)d * d, 11);
    trial_run("skew", run_skew, &q, 2, 0, trial_eps(type) / 2);
  }
}

static void run_diagonal(const ph_kern *k, trial *q) {
  k->add_diagonal(q->m, 0.25, q->v[0].at);
  tile_set(q, 1, 0, 0, k->trace(q->m, q->v[0].at));
}

static void diagonals_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(d) {
    trial q = {.type = type, .m = d};
    tile_new(&q, 0, d, d, 0);
    tile_new(&q, 1, 1, 1, 0);
    trial_run("add_diagonal, trace", run_diagonal, &q, 1 | 2, 65 * trial_eps(type),
              trial_eps(type)); /* 65 sums of size 1 */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(gemm_all_sizes),     PH_TEST(gemm_all_flags),      PH_TEST(gemm_all_blocks), PH_TEST(gemm_adds_in_order),
      PH_TEST(gemm_passes_nan_on), PH_TEST(transpose_all_sizes), PH_TEST(skew_all_sizes),  PH_TEST(diagonals_all_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
