/* test_text.c - texts that grow. */
#include "base/text.h"
#include "ph_test.h"

static void test_grows(void **state) {
  (void)state;
  ph_text t = {0};
  ph_err err;
  char *text = NULL;
  size_t n = 0;
  for (int i = 0; i < 1000; i++) {
    ph_text_put(&t, "%03d,", i);
  }
  ph_ok(ph_text_take(&t, &text, &n, &err));
  assert_int_equal(4000, n);
  assert_int_equal(4000, strlen(text));
  assert_memory_equal(text + 4 * 512, "512,", 4);
  ph_mem_free(text);
}

static void test_empty_and_long(void **state) {
  (void)state;
  ph_text t = {0};
  ph_err err;
  char *text = NULL;
  ph_ok(ph_text_take(&t, &text, NULL, &err));
  assert_string_equal("", text);
  ph_mem_free(text);
  ph_text_put(&t, "%0600d", 1);
  size_t n = 0;
  ph_ok(ph_text_take(&t, &text, &n, &err));
  assert_int_equal(511, n);
  ph_mem_free(text);
}

static ph_status write_once(void) {
  ph_text t = {0};
  ph_err err;
  char *text = NULL;
  for (int i = 0; i < 300; i++) {
    ph_text_put(&t, "a piece of text ");
  }
  ph_status st = ph_text_take(&t, &text, NULL, &err);
  if (!st) {
    ph_mem_free(text);
  }
  return st;
}

static void test_short_memory(void **state) {
  (void)state;
  ph_each_failed_allocation(write_once());
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_grows), PH_TEST(test_empty_and_long), PH_TEST(test_short_memory)};
  return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
