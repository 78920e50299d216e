#include "ph_test.h"

static void names_and_texts(void **state) {
  (void)state;
  assert_string_equal("PH_OK", ph_status_name(PH_OK));
  assert_string_equal("PH_E_IO", ph_status_name(PH_E_IO));
  assert_string_equal("input or output failed", ph_status_text(PH_E_IO));
  assert_string_equal("PH_E_?", ph_status_name((ph_status)-99));
  assert_string_equal("unknown status", ph_status_text((ph_status)7));
}

static void codes_are_distinct_and_negative(void **state) {
  (void)state;
  static const ph_status all[] = {
#define X(name, value, text) name,
      PH_STATUS_TABLE(X)
#undef X
  };
  for (int i = 1; i < PH_COUNT(all); i++) {
    assert_true(all[i] < 0);
    for (int j = 0; j < i; j++) {
      assert_int_not_equal(all[i], all[j]);
      assert_string_not_equal(ph_status_text(all[i]), ph_status_text(all[j]));
    }
  }
}

static void set_fills_and_returns(void **state) {
  (void)state;
  ph_err err = {.code = PH_OK};
  assert_int_equal(PH_E_SHAPE, ph_err_set(&err, PH_E_SHAPE, "A is (%d, %d)", 3, 4));
  assert_int_equal(PH_E_SHAPE, err.code);
  assert_string_equal("A is (3, 4)", err.text);
  assert_int_equal(PH_E_ARG, ph_err_set(NULL, PH_E_ARG, "nobody listens"));
}

static void prefix_keeps_the_code(void **state) {
  (void)state;
  ph_err err;
  ph_err_set(&err, PH_E_IO, "disk full");
  assert_int_equal(PH_E_IO, ph_err_prefix(&err, PH_E_ARG, "line %d", 7));
  assert_string_equal("line 7: disk full", err.text);
  assert_int_equal(PH_E_ARG, ph_err_prefix(NULL, PH_E_ARG, "x"));
}

static void own_text_may_be_an_argument(void **state) {
  (void)state;
  ph_err err;
  ph_err_set(&err, PH_E_IO, "inner");
  ph_err_set(&err, PH_E_FORMAT, "outer (%s)", err.text);
  assert_string_equal("outer (inner)", err.text);
}

static void long_texts_are_cut_visibly(void **state) {
  (void)state;
  char big[3 * PH_ERR_TEXT];
  memset(big, 'x', sizeof big);
  big[sizeof big - 1] = '\0';
  ph_err err;
  ph_err_set(&err, PH_E_IO, "%s", big);
  assert_int_equal(PH_ERR_TEXT - 1, strlen(err.text));
  assert_string_equal("x...", err.text + PH_ERR_TEXT - 5);
  ph_err_set(&err, PH_E_IO, "end");
  ph_err_prefix(&err, PH_E_IO, "%s", big);
  assert_string_equal("x...", err.text + PH_ERR_TEXT - 5);
  ph_err_set(&err, PH_E_IO, "%.*s", PH_ERR_TEXT - 1, big); /* fits exactly */
  assert_string_equal("xxxx", err.text + PH_ERR_TEXT - 5);
}

static void a_message_is_one_line_without_controls(void **state) {
  (void)state;
  ph_err err;
  ph_err_set(&err, PH_E_IO, "cannot open '%s'", "a\nb\x1b[31m\tc\x7f");
  assert_string_equal("cannot open 'a b [31m c '", err.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(names_and_texts),
      PH_TEST(codes_are_distinct_and_negative),
      PH_TEST(set_fills_and_returns),
      PH_TEST(prefix_keeps_the_code),
      PH_TEST(own_text_may_be_an_argument),
      PH_TEST(long_texts_are_cut_visibly),
      PH_TEST(a_message_is_one_line_without_controls),
  };
  return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
