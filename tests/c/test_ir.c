/* test_ir.c - canonical text: print(parse(s)) == s, and one line for everything that is not canonical. */
#include "ir/ir.h"
#include "ph_test.h"

static const char DEPTH[] =
    "phrun-ir 1\ndtype f32\ninput 1 8\nsegment depth 240\nparam A 8 8 normal 0.1\nparam b 1 8 zeros\n"
    "node 0 state\nnode 1 skew p0\nnode 2 cayley n1\nnode 3 apply n2 n0\nnode 4 bias n3 p1\nresult n4\nend\n"
    "loss mse\n";
static const char TIME[] =
    "phrun-ir 1\ndtype f64\ninput 5 3\nsegment time 5\nwidth 4\nparam W 4 4 uniform 0.5\nparam U 4 3 constant -1e-07\n"
    "node 0 state\nnode 1 input\nnode 2 apply p0 n0\nnode 3 apply p1 n1\nnode 4 add n2 n3\nnode 5 tanh n4\n"
    "result n5\nread n4\nend\nloss none\n";

static ph_status parse(const char *text, ph_err *err) {
  ph_ir *ir = NULL;
  ph_status st = ph_ir_parse(&ir, text, strlen(text), err);
  if (!st) {
    ph_ir_free(ir);
  }
  return st;
}

static void round_trip(const char *text) {
  ph_ir *ir = NULL;
  ph_err err;
  char *back = NULL;
  size_t n = 0;
  if (ph_ir_parse(&ir, text, strlen(text), &err)) {
    fail_msg("%s", err.text);
  }
  ph_ok(ph_ir_print(ir, &back, &n, &err));
  assert_string_equal(text, back);
  assert_int_equal(strlen(text), n);
  ph_mem_free(back);
  ph_ir_free(ir);
}

static void test_round_trip(void **state) {
  (void)state;
  round_trip(DEPTH);
  round_trip(TIME);
}

static void test_shapes(void **state) {
  (void)state;
  ph_ir *ir = NULL;
  ph_err err;
  ph_ok(ph_ir_parse(&ir, TIME, strlen(TIME), &err));
  assert_int_equal(5, ir->output.pos);
  assert_int_equal(4, ir->output.cols);
  assert_int_equal(PH_SEG_TIME, ir->segment[0].kind);
  assert_int_equal(4, ir->segment[0].read);
  ph_ir_free(ir);
}

/* One replacement in a good text, and what the message must say. */
typedef struct wrong {
  const char *text, *from, *to, *says;
  ph_status code;
} wrong;

static const wrong WRONG[] = {
    {DEPTH, "phrun-ir 1", "phrun-ir 2", "line 1: expected 'phrun-ir 1'", PH_E_PARSE},
    {DEPTH, "dtype f32", "dtype u8", "line 2", PH_E_PARSE},
    {DEPTH, "input 1 8", "input 1 -8", "line 3", PH_E_PARSE},
    {DEPTH, "input 1 8", "input 1 7", "line 10: apply: a matrix (8, 8) does not fit a state of width 7", PH_E_SHAPE},
    {DEPTH, "depth 240", "depth 0", "line 4", PH_E_PARSE},
    {DEPTH, "depth 240", "width 240", "line 4", PH_E_PARSE},
    {DEPTH, "normal 0.1", "normal 0.10", "line 5: not in canonical form", PH_E_PARSE},
    {DEPTH, "normal 0.1", "normal nan", "line 5", PH_E_PARSE},
    {DEPTH, "normal 0.1", "gauss 0.1", "unknown initial value", PH_E_PARSE},
    {DEPTH, "param b", "param A", "used once", PH_E_PARSE},
    {DEPTH, "skew", "askew", "line 8: unknown op 'askew'", PH_E_PARSE},
    {DEPTH, "skew p0", "skew p2", "'p2' is not an earlier node or parameter", PH_E_PARSE},
    {DEPTH, "skew p0", "skew n1", "'n1' is not an earlier node or parameter", PH_E_PARSE},
    {DEPTH, "node 4", "node 5", "counting up", PH_E_PARSE},
    {DEPTH, "apply n2 n0", "apply n2", "apply: takes 2 arguments, got 1", PH_E_PARSE},
    {DEPTH, "result n4", "result n2", "must be a state", PH_E_SHAPE},
    {DEPTH, "loss mse", "loss huber", "unknown loss", PH_E_PARSE},
    {DEPTH, "loss mse\n", "loss mse", "must end with a newline", PH_E_PARSE},
    {DEPTH, "loss mse\n", "loss mse\nend\n", "nothing may follow", PH_E_PARSE},
    {DEPTH, "node 1 skew", "node  1 skew", "line 8: not in canonical form", PH_E_PARSE},
    {TIME, "input 5 3", "input 6 3", "5 steps does not fit an input of 6 positions", PH_E_SHAPE},
    {TIME, "width 4", "width 5", "does not fit", PH_E_SHAPE},
    {TIME, "read n4\n", "read p0\n", "read", PH_E_PARSE},
};

static void replace(char *out, size_t size, const wrong *w) {
  const char *at = strstr(w->text, w->from);
  assert_non_null(at);
  snprintf(out, size, "%.*s%s%s", (int)(at - w->text), w->text, w->to, at + strlen(w->from));
}

static void test_wrong(void **state) {
  (void)state;
  for (int i = 0; i < PH_COUNT(WRONG); i++) {
    char text[2048];
    ph_err err = {0};
    replace(text, sizeof text, &WRONG[i]);
    ph_status st = parse(text, &err);
    if (st != WRONG[i].code || !strstr(err.text, WRONG[i].says)) {
      fail_msg("'%s': status %s, text '%s', wanted '%s'", WRONG[i].to, ph_status_name(st), err.text, WRONG[i].says);
    }
  }
}

/* Every prefix and every one-byte change is refused or read, never a crash. */
static void test_damage(void **state) {
  (void)state;
  ph_err err;
  char text[sizeof TIME];
  for (size_t n = 0; n < sizeof TIME - 1; n++) {
    ph_ir *ir = NULL;
    assert_int_not_equal(PH_OK, ph_ir_parse(&ir, TIME, n, &err));
  }
  for (size_t i = 0; i < sizeof TIME - 1; i++) {
    for (int b = 0; b < 256; b += 5) {
      memcpy(text, TIME, sizeof TIME);
      text[i] = (char)b;
      ph_ir *ir = NULL;
      if (!ph_ir_parse(&ir, text, sizeof TIME - 1, &err)) {
        ph_ir_free(ir);
      }
    }
  }
}

static void test_short_memory(void **state) {
  (void)state;
  ph_err err;
  ph_each_failed_allocation(parse(TIME, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_round_trip), PH_TEST(test_shapes), PH_TEST(test_wrong),
                                     PH_TEST(test_damage), PH_TEST(test_short_memory)};
  return cmocka_run_group_tests_name("ir", tests, NULL, NULL);
}
