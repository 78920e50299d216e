/* test_ir.c - canonical text: print(parse(s)) == s, and one line for everything that is not canonical. */
#include <float.h>

#include "base/rng.h"
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

static const char STREAMS[] =
    "phrun-ir 2\ndtype f64\ninput 3 4 5\n"
    "segment core repeat 3 tied driven from zero 4 6\nparam W 6 6 normal 0.5\nparam U 6 5 ones\ntable t 0 0.5 1\n"
    "node 0 state\nnode 1 input\nnode 2 apply p0 n0\nnode 3 apply p1 n1\nnode 4 scale by=@t n3\nnode 5 add n2 n4\n"
    "result n5\nread n3\nend\n"
    "segment free repeat 1000 tied\nparam V 1 6 constant 2\nnode 0 state\nnode 1 bias n0 p0\nresult n1\nend\n"
    "segment inputs repeat 2 driven\nparam G 6 6 zeros\ntable h 0.1 0.01\nnode 0 state\nnode 1 gram p0\n"
    "node 2 damping step=@h n1\nnode 3 input\nnode 4 apply n2 n3\nnode 5 add n0 n4\nresult n5\nend\n"
    "segment core repeat 1\nparam W 6 6 normal 0.5\nparam Z 1 6 zeros\nnode 0 state\nnode 1 apply p0 n0\n"
    "node 2 bias n1 p1\nresult n2\nend\n"
    "segment s5\nparam R 1 6 uniform 0.25\ntable c -0.5\nnode 0 state\nnode 1 scale by=@c n0\nnode 2 apply p0 n1\n"
    "result n2\nend\n"
    "segment s6 repeat 7 from zero 1 1\nnode 0 state\nnode 1 tanh n0\nresult n1\nread n0\nterm 0.5 n1\nterm -1 n0\n"
    "observe H n1\nend\nloss mse\n";

static const char LOSS[] =
    "phrun-ir 2\ndtype f32\ninput 1 3\nsegment s1\nnode 0 state\nnode 1 tanh n0\nresult n1\nend\n"
    "table w 1 0.5 0\nloss softmax_cross_entropy smoothing=0.1 weights=@w\n";
static const char HUBER[] =
    "phrun-ir 2\ndtype f32\ninput 1 3\nsegment s1\nnode 0 state\nnode 1 tanh n0\nresult n1\nend\n"
    "loss huber delta=0.5\n";

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
  round_trip(STREAMS);
  round_trip(LOSS);
  round_trip(HUBER);
}

static void test_shapes(void **state) {
  (void)state;
  ph_ir *ir = NULL;
  ph_err err;
  ph_ok(ph_ir_parse(&ir, TIME, strlen(TIME), &err));
  assert_int_equal(5, ir->output.pos);
  assert_int_equal(4, ir->output.cols);
  assert_true(ir->segment[0].tied && ir->segment[0].driven && ir->segment[0].from_zero);
  assert_int_equal(4, ir->segment[0].read);
  assert_string_equal("s1", ir->segment[0].name);
  ph_ir_free(ir);
}

static void same_shape(int64_t pos, int64_t wide, int64_t cols, ph_shape s) {
  assert_int_equal(pos, s.pos);
  assert_int_equal(wide, s.wide);
  assert_int_equal(cols, s.cols);
}

/* A driven stream takes a line of two axes at an iteration, a read-out puts the iterations on the first axis. */
static void test_shapes_of_streams(void **state) {
  (void)state;
  ph_ir *ir = NULL;
  ph_err err;
  ph_ok(ph_ir_parse(&ir, STREAMS, strlen(STREAMS), &err));
  same_shape(12, 4, 5, ir->segment[0].in);
  same_shape(4, 1, 5, ir->segment[0].input);
  same_shape(4, 1, 6, ir->segment[0].state);
  same_shape(12, 4, 6, ir->segment[0].out);
  same_shape(12, 4, 6, ir->segment[1].out);
  same_shape(4, 1, 6, ir->segment[2].state); /* place 0 of three; the other two are inputs */
  same_shape(4, 1, 6, ir->segment[3].out);
  same_shape(4, 1, 1, ir->segment[4].out);
  same_shape(7, 1, 1, ir->output);
  assert_int_equal(1, ph_ir_sets(&ir->segment[1]));
  assert_int_equal(2, ph_ir_sets(&ir->segment[2]));
  assert_true(ir->segment[4].once && !ir->segment[3].once);
  assert_true(ir->segment[2].node[2].attr[0] == 0.1 && ir->segment[2].tables.at[0].value[1] == 0.01);
  ph_ir_free(ir);
}

/* What version 1 can say has one text, whoever writes it. */
static void test_one_text(void **state) {
  (void)state;
  static const char two[] = "phrun-ir 2\ndtype f32\ninput 1 8\nsegment s1 repeat 2\nnode 0 state\nresult n0\nend\n"
                            "segment s2\nnode 0 state\nnode 1 tanh n0\nresult n1\nend\nloss none\n";
  static const char one[] = "phrun-ir 1\ndtype f32\ninput 1 8\nsegment depth 2\nnode 0 state\nresult n0\nend\n"
                            "segment once 1\nnode 0 state\nnode 1 tanh n0\nresult n1\nend\nloss none\n";
  ph_ir *ir = NULL;
  ph_err err = {0};
  char *text = NULL;
  ph_fails(PH_E_PARSE, "line 1: version 1 can say this model, so version 1 says it", parse(two, &err), err);
  ph_ok(ph_ir_read(&ir, two, strlen(two), &err));
  ph_ok(ph_ir_print(ir, &text, NULL, &err));
  assert_string_equal(one, text);
  ph_mem_free(text);
  ph_ir_free(ir);
  round_trip(one);
}

/* The numbers of IR text are the shortest that read back, in the form that %g gives so many digits. */
static void test_numbers(void **state) {
  (void)state;
  static const double v[] = {0,    1,       100,    0.1,     1.0 / 3, 1e22, 123456789, 5e-324,  2.5e-310,
                             -7e5, 4.35e-9, 0x1p60, 0x1p-30, 1e15,    1e16, 1e17,      DBL_MAX, DBL_MIN};
  ph_rng rng = ph_rng_of(1, "numbers");
  for (int i = 0; i < 20000; i++) {
    double x = i < PH_COUNT(v) ? v[i] : ldexp(ph_rng_normal(rng, (uint64_t)i), i % 64 - 32);
    x = i % 7 == 0 && i >= PH_COUNT(v) ? (double)(float)x : x;
    char text[256];
    char number[32];
    int digits = 1;
    do {
      snprintf(number, sizeof number, "%.*g", digits, x);
    } while (strtod(number, NULL) != x && digits++ < 17);
    snprintf(text, sizeof text,
             "phrun-ir 1\ndtype f32\ninput 1 1\nsegment once 1\nparam c 1 1 constant %s\nnode 0 state\nresult n0\nend\n"
             "loss none\n",
             number);
    round_trip(text);
  }
}

/* One replacement in a good text, and what the message must say. */
typedef struct wrong {
  const char *text, *from, *to, *says;
  ph_status code;
} wrong;

static const wrong WRONG[] = {
    {DEPTH, "phrun-ir 1", "phrun-ir 3", "line 1: expected 'phrun-ir 1' or 'phrun-ir 2'", PH_E_PARSE},
    {DEPTH, "phrun-ir 1", "phrun-ir 2", "line 4: expected 'segment NAME repeat N [tied] [driven]", PH_E_PARSE},
    {DEPTH, "input 1 8", "input 2 2 8", "line 1: version 1 cannot say this model", PH_E_PARSE},
    {DEPTH, "end\n", "read n0\nend\n", "line 1: version 1 cannot say this model", PH_E_PARSE},
    {DEPTH, "end\n", "term 1 n0\nend\n", "expected 'end'", PH_E_PARSE},
    {DEPTH, "node 0", "table t 1\nnode 0", "expected 'param' or 'node'", PH_E_PARSE},
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
    {DEPTH, "loss mse", "loss hubert", "unknown loss", PH_E_PARSE},
    {DEPTH, "loss mse", "loss huber", "line 1: version 1 cannot say this model", PH_E_PARSE},
    {DEPTH, "loss mse", "loss mse delta=2", "unknown attribute of the loss, or out of order", PH_E_PARSE},
    {DEPTH, "loss mse\n", "loss mse", "must end with a newline", PH_E_PARSE},
    {DEPTH, "loss mse\n", "loss mse\nend\n", "nothing may follow", PH_E_PARSE},
    {DEPTH, "node 1 skew", "node  1 skew", "line 8: not in canonical form", PH_E_PARSE},
    {TIME, "input 5 3", "input 6 3", "driven for 5 iterations takes 5 positions, got 6", PH_E_SHAPE},
    {TIME, "width 4", "width 5", "does not fit", PH_E_SHAPE},
    {TIME, "read n4\n", "read p0\n", "read", PH_E_PARSE},
    {STREAMS, "input 3 4 5", "input 2 4 5", "takes 3 positions, got 2 on the first axis", PH_E_SHAPE},
    {STREAMS, "input 3 4 5", "input 3 1 5", "line 3: expected 'input", PH_E_PARSE},
    {STREAMS, "input 3 4 5", "input 1048576 2 5", "line 3: expected 'input", PH_E_PARSE},
    {STREAMS, "repeat 3 tied driven", "repeat 3 driven tied", "line 4: expected 'segment NAME", PH_E_PARSE},
    {STREAMS, "repeat 1000", "repeat 1048577", "expected 'segment NAME", PH_E_PARSE},
    {STREAMS, "from zero 4 6", "from input", "line 4: expected 'segment NAME", PH_E_PARSE},
    {STREAMS, "from zero 4 6", "from zero 6", "line 4: expected 'segment NAME", PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t 0 0.5",
     "line 7: a table must have one finite number for each of 3 iterations", PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t 0 0.5 1 2", "line 7: a table must have one finite number for each of 3",
     PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t 0 nan 1", "one finite number", PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t 0  0.5 1", "one finite number", PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t 0 0.50 1", "line 7: not in canonical form", PH_E_PARSE},
    {STREAMS, "table t 0 0.5 1", "table t", "one finite number", PH_E_PARSE},
    {STREAMS, "by=@t", "by=@h", "line 12: scale: expected the attribute by=NUMBER or =@TABLE", PH_E_PARSE},
    {STREAMS, "scale by=@t n3", "scale by=@t p1",
     "line 12: scale: in a tied stream a parameter value is the same at every iteration; a table can scale a state",
     PH_E_SHAPE},
    {STREAMS, "table h 0.1 0.01", "table h 0.1 -0.01", "line 28: iteration 1: damping: step must be", PH_E_ARG},
    {STREAMS, "segment core repeat 1\n", "segment core repeat 2\n", "but one 'core' has 1 sets of them and another 2",
     PH_E_SHAPE},
    {STREAMS, "segment core repeat 1\nparam W 6 6 normal 0.5", "segment core repeat 1\nparam W 6 6 normal 0.25",
     "the parameter core.W is 6 x 6, normal in one segment and 6 x 6, normal in another with another number",
     PH_E_SHAPE},
    {STREAMS, "term 0.5 n1", "term n1", "expected 'term WEIGHT nK'", PH_E_PARSE},
    {STREAMS, "observe H n1", "observe H n1\nobserve H n0", "an observation's name must be used once", PH_E_PARSE},
    {STREAMS, "observe H n1", "observe 2 n1", "expected 'observe NAME nK'", PH_E_PARSE},
    {STREAMS, "read n3\nend", "term 1 n3\nend", "line 15: term: must be one number a sample, n3 has 4 x 6", PH_E_SHAPE},
    {LOSS, "smoothing=0.1", "smoothing=1", "line 10: softmax_cross_entropy: smoothing cannot be 1", PH_E_PARSE},
    {LOSS, "smoothing=0.1", "smoothing=0", "line 10: not in canonical form", PH_E_PARSE},
    {LOSS, "table w 1 0.5 0", "table w 1 -0.5 0", "weights cannot be -0.5", PH_E_PARSE},
    {LOSS, "table w 1 0.5 0", "table w 1 0.5", "one finite number for each of 3 features of the output", PH_E_PARSE},
    {LOSS, "weights=@w", "weights=@v", "expected weights=@TABLE", PH_E_PARSE},
    {LOSS, "weights=@w", "weights=2", "expected weights=@TABLE", PH_E_PARSE},
    {LOSS, "smoothing=0.1 weights=@w", "weights=@w smoothing=0.1", "or out of order", PH_E_PARSE},
    {HUBER, "delta=0.5", "delta=0", "huber: delta cannot be 0", PH_E_PARSE},
    {HUBER, "delta=0.5", "delta=1", "line 9: not in canonical form", PH_E_PARSE},
    {STREAMS, "segment s5", "segment 5s", "expected 'segment NAME'", PH_E_PARSE},
    {STREAMS, "result n2\nend\nsegment s6", "result n2\nread n2\nend\nsegment s6", "expected 'read nK' in a stream",
     PH_E_PARSE},
};

static void replace(char *out, size_t size, const wrong *w) {
  const char *at = strstr(w->text, w->from);
  assert_non_null(at);
  snprintf(out, size, "%.*s%s%s", (int)(at - w->text), w->text, w->to, at + strlen(w->from));
}

static void test_wrong(void **state) {
  (void)state;
  for (int i = 0; i < PH_COUNT(WRONG); i++) {
    char text[4096];
    ph_err err = {0};
    replace(text, sizeof text, &WRONG[i]);
    ph_status st = parse(text, &err);
    if (st != WRONG[i].code || !strstr(err.text, WRONG[i].says)) {
      fail_msg("'%s': status %s, text '%s', wanted '%s'", WRONG[i].to, ph_status_name(st), err.text, WRONG[i].says);
    }
  }
}

/* Every prefix and every one-byte change is refused or read, never a crash. */
static void damage(const char *good, size_t size) {
  ph_err err;
  ph_ir *ir = NULL;
  for (size_t n = 0; n < size; n++) {
    assert_int_not_equal(PH_OK, ph_ir_parse(&ir, good, n, &err));
  }
  char *text = ph_mem_new(size, 1);
  assert_non_null(text);
  for (size_t i = 0; i < size; i++) {
    for (int b = 0; b < 256; b += 5) {
      memcpy(text, good, size);
      text[i] = (char)b;
      if (!ph_ir_parse(&ir, text, size, &err)) {
        ph_ir_free(ir);
      }
    }
  }
  ph_mem_free(text);
}

static void test_damage(void **state) {
  (void)state;
  damage(TIME, sizeof TIME - 1);
  damage(STREAMS, sizeof STREAMS - 1);
  damage(LOSS, sizeof LOSS - 1);
}

static void test_short_memory(void **state) {
  (void)state;
  ph_err err;
  ph_each_failed_allocation(parse(TIME, &err));
  ph_each_failed_allocation(parse(STREAMS, &err));
  ph_each_failed_allocation(parse(LOSS, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(test_round_trip), PH_TEST(test_shapes),      PH_TEST(test_shapes_of_streams),
      PH_TEST(test_one_text),   PH_TEST(test_numbers),     PH_TEST(test_wrong),
      PH_TEST(test_damage),     PH_TEST(test_short_memory)};
  return cmocka_run_group_tests_name("ir", tests, NULL, NULL);
}
