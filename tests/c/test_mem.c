#include "ph_test.h"

static void blocks_are_aligned_and_zero(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 7, 63, 64, 65, 4096, 1 << 20};
  for (int i = 0; i < PH_COUNT(sizes); i++) {
    unsigned char *p = ph_mem_new(sizes[i], 3);
    assert_non_null(p);
    assert_int_equal(0, (uintptr_t)p % 64);
    for (size_t k = 0; k < 3 * sizes[i]; k++) {
      assert_int_equal(0, p[k]);
    }
    memset(p, 0xff, 3 * sizes[i]);
    ph_mem_free(p);
  }
}

static void books_balance(void **state) {
  (void)state;
  ph_mem_stats a = ph_mem_now();
  void *p = ph_mem_new(10, 100);
  void *q = ph_mem_new(1, 24);
  ph_mem_stats b = ph_mem_now();
  assert_int_equal(a.blocks + 2, b.blocks);
  assert_int_equal(a.bytes + 1024, b.bytes);
  assert_int_equal(a.calls + 2, b.calls);
  assert_true(b.peak >= b.bytes);
  ph_mem_free(p);
  ph_mem_free(q);
  ph_mem_free(NULL);
  ph_mem_stats c = ph_mem_now();
  assert_int_equal(a.bytes, c.bytes);
  assert_int_equal(b.peak, c.peak);
}

static void empty_blocks_are_valid_and_distinct(void **state) {
  (void)state;
  void *p = ph_mem_new(0, 8);
  void *q = ph_mem_new(8, 0);
  assert_non_null(p);
  assert_non_null(q);
  assert_ptr_not_equal(p, q);
  ph_mem_free(p);
  ph_mem_free(q);
}

static void impossible_sizes_give_null(void **state) {
  (void)state;
  assert_null(ph_mem_new(SIZE_MAX, 2));
  assert_null(ph_mem_new(SIZE_MAX, 1));
  assert_null(ph_mem_new((size_t)1 << 63, 1));
  assert_null(ph_mem_new((size_t)1 << 32, (size_t)1 << 32));
}

static void strdup_copies(void **state) {
  (void)state;
  char *s = ph_mem_strdup("stream");
  assert_string_equal("stream", s);
  ph_mem_free(s);
  ph_mem_fail_at(1);
  assert_null(ph_mem_strdup("stream"));
}

static void grow_keeps_the_used_part_and_zeroes_the_rest(void **state) {
  (void)state;
  char *p = ph_mem_grow(NULL, 0, 4, 1);
  memcpy(p, "abcd", 4);
  char *q = ph_mem_grow(p, 3, 100, 1);
  assert_memory_equal("abc\0", q, 4);
  assert_int_equal(0, q[99]);
  ph_mem_fail_at(1);
  assert_null(ph_mem_grow(q, 100, 200, 1));
  assert_memory_equal("abc", q, 3); /* the old block lives on */
  ph_mem_free(q);
}

static void the_nth_allocation_fails_once(void **state) {
  (void)state;
  void *p[5];
  ph_mem_fail_at(3);
  for (int i = 0; i < 5; i++) {
    p[i] = ph_mem_new(1, 1);
  }
  for (int i = 0; i < 5; i++) {
    assert_true((p[i] == NULL) == (i == 2));
  }
  ph_mem_fail_at(1);
  ph_mem_fail_at(0);
  void *again = ph_mem_new(1, 1);
  assert_non_null(again);
  ph_mem_free(again);
  for (int i = 0; i < 5; i++) {
    ph_mem_free(p[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(blocks_are_aligned_and_zero),
      PH_TEST(books_balance),
      PH_TEST(empty_blocks_are_valid_and_distinct),
      PH_TEST(impossible_sizes_give_null),
      PH_TEST(strdup_copies),
      PH_TEST(grow_keeps_the_used_part_and_zeroes_the_rest),
      PH_TEST(the_nth_allocation_fails_once),
  };
  return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
