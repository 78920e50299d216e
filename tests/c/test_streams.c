/* test_streams.c - what streams compute: every combination of their properties, random blocks, against node-by-node evaluation;
 * gradients by central differences; windows of kept states. */
#include "engine/compile/program.h"
#include "random_model.h"
#include "slow_model.h"

static void check_model(const char *text, const ph_plan_options *o, uint64_t seed) {
  ph_ir *ir = sm_ir(text);
  ph_plan *p = sm_plan(text, o);
  ph_plan_init(p, seed);
  sm_set s;
  sm_set_of(&s, ir);
  sm_check_forward(p, text, &s);
  sm_check_gradient(p, text, &s);
  sm_set_drop(&s);
  ph_plan_free(p);
  ph_ir_free(ir);
}

static void random_models(const ph_plan_options *o, uint64_t seeds) {
  for (int i = 0; i < RM_STREAMS; i++) {
    rm_stream k = rm_stream_at(i);
    for (uint64_t seed = 0; seed < seeds; seed++) {
      rm m;
      rm_model(&m, seed, &k);
      check_model(m.text, o, seed);
    }
  }
}

static void test_random(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 4}, 40);
  random_models(&(ph_plan_options){.batch = 64, .threads = 2}, 40);
}

static void test_random_windows(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 8, .tape_bytes = 1}, 12);
  random_models(&(ph_plan_options){.batch = 8, .tape_bytes = 4096}, 12);
}

static void test_random_probed(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 64, .probe = true}, 6);
}

/* Every row of the table is part of some model, and what it computes reaches a result. */
static void test_random_meets_every_op(void **state) {
  (void)state;
  int met[256] = {0};
  rm_stream k = rm_stream_at(0);
  for (uint64_t seed = 0; seed < 300; seed++) {
    rm m;
    ph_graph g;
    ph_err err;
    rm_model(&m, seed, &k);
    ph_ir *ir = sm_ir(m.text);
    for (int s = 0; s < ir->nsegments; s++) {
      ph_ok(ph_graph_build(&g, &ir->segment[s], 4, false, &err));
      for (int i = 0; i < g.n; i++) {
        met[g.node[i].op && g.node[i].live ? ph_op_number(g.node[i].op) : PH_COUNT(met) - 1]++;
      }
      ph_graph_fini(&g);
    }
    ph_ir_free(ir);
  }
  for (int i = 0; i < ph_op_count(); i++) {
    const ph_op *op = ph_op_at(i);
    if (!met[i] && op->role != PH_ROLE_INPUT &&
        op->role != PH_ROLE_SUB) { /* no input here; a difference becomes a sum */
      fail_msg("no random model has %s in what it computes", op->name);
    }
  }
}

/* ---- streams that a spec would write ---- */

static const ph_optim ADAM = {.kind = PH_OPTIM_ADAM, .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static uint64_t bits(const ph_plan *p) {
  uint64_t h = 1469598103934665603ULL;
  ph_err err;
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    ph_tensor *t = NULL;
    ph_ok(ph_plan_get(p, i, PH_MOMENT_VALUE, &t, &err));
    for (size_t k = 0; k < ph_tensor_bytes(t); k++) {
      h = (h ^ ((uint8_t *)t->data)[k]) * 1099511628211ULL;
    }
    ph_tensor_free(t);
  }
  return h;
}

/* Loss of the last of `steps` steps on SM_SAMPLES samples; *first: of the first. */
static double train(ph_plan *p, const sm_set *s, const ph_optim *o, int steps, double *first) {
  ph_err err;
  ph_result res = {0};
  for (int i = 0; i < steps; i++) {
    ph_ok(ph_plan_step(p, &s->data, s->idx, SM_SAMPLES, o, &res, &err));
    assert_true(res.finite);
    *first = i == 0 ? res.loss : *first;
  }
  return res.loss;
}

/* The model agrees with node-by-node evaluation and with differences, brings its loss below a share of what it was, and
 * has the same bits with windows and without. */
static void check_stream(const char *text, int steps, double share) {
  uint64_t h[2];
  ph_ir *ir = sm_ir(text);
  for (int i = 0; i < 2; i++) {
    ph_plan *p = sm_plan(text, &(ph_plan_options){.batch = 8, .threads = 1 + i, .tape_bytes = i ? 4000 : 1 << 30});
    ph_cost cost;
    ph_plan_cost(p, &cost);
    assert_true((cost.window > 0) == (i == 1)); /* kept states, and a window run again before its backward pass */
    sm_set s;
    sm_set_of(&s, ir);
    ph_plan_init(p, 1);
    sm_check_forward(p, text, &s);
    sm_check_gradient(p, text, &s);
    ph_plan_init(p, 1);
    double first = 0;
    double last = train(p, &s, &ADAM, steps, &first);
    if (!(last < share * first)) {
      fail_msg("the loss goes from %g to %g only\n%s", first, last, text);
    }
    h[i] = bits(p);
    sm_set_drop(&s);
    ph_plan_free(p);
  }
  assert_true(h[0] == h[1]);
  ph_ir_free(ir);
}

/* One set of parameters for 1000 iterations, the last state read out. */
static void test_deep_recursion(void **state) {
  (void)state;
  check_stream(
      "phrun-ir 2\ndtype f64\ninput 1 4\nsegment s1 repeat 1000 tied\nparam A 4 4 normal 0.3\nparam B 4 4 normal 0.3\n"
      "param W 4 4 normal 0.5\nparam b 1 4 normal 0.5\nnode 0 state\nnode 1 skew p0\nnode 2 cayley n1\nnode 3 apply n2 "
      "n0\n"
      "node 4 apply p2 n0\nnode 5 bias n4 p3\nnode 6 tanh n5\nnode 7 apply p1 n6\nnode 8 scale by=0.002 n7\n"
      "node 9 add n3 n8\nresult n9\nend\nsegment s2\nparam W 4 4 normal 0.5\nnode 0 state\nnode 1 apply p0 n0\n"
      "result n1\nend\nloss mse\n",
      60, 0.7);
}

/* A free-running rollout: what each of 60 iterations gives is compared with its target. */
static void test_rollout(void **state) {
  (void)state;
  check_stream(
      "phrun-ir 2\ndtype f64\ninput 1 4\nsegment s1 repeat 60 tied\nparam A 4 4 normal 0.3\nparam W 3 4 normal 0.5\n"
      "node 0 state\nnode 1 apply p0 n0\nnode 2 scale by=0.1 n1\nnode 3 add n0 n2\nnode 4 tanh n3\nnode 5 apply p1 n4\n"
      "result n4\nread n5\nend\nsegment s2\nparam V 3 3 normal 0.5\nparam c 1 3 zeros\nnode 0 state\nnode 1 apply p0 "
      "n0\n"
      "node 2 bias n1 p1\nresult n2\nend\nloss huber delta=0.5\n",
      150, 0.95); /* most of the target is noise */
}

/* Thirty layers, each with its own parameters and its own input. */
static const char INPUTS[] =
    "phrun-ir 2\ndtype f64\ninput 31 4\nsegment s1 repeat 30 driven\nparam A 4 4 normal 0.3\nparam B 4 4 normal 0.3\n"
    "param U 4 4 normal 0.3\ntable h 0.5 0.49 0.48 0.47 0.46 0.45 0.44 0.43 0.42 0.41 0.4 0.39 0.38 0.37 0.36 0.35 "
    "0.34 0.33 0.32 "
    "0.31 0.3 0.29 0.28 0.27 0.26 0.25 0.24 0.23 0.22 0.21\nnode 0 state\nnode 1 input\nnode 2 skew p0\nnode 3 cayley "
    "n2\n"
    "node 4 apply n3 n0\nnode 5 apply p2 n1\nnode 6 add n0 n5\nnode 7 tanh n6\nnode 8 apply p1 n7\nnode 9 scale by=@h "
    "n8\n"
    "node 10 add n4 n9\nresult n10\nend\nsegment s2\nparam W 3 4 normal 0.5\nnode 0 state\nnode 1 apply p0 n0\nresult "
    "n1\nend\n"
    "loss mse\n";

static void test_input_per_layer(void **state) {
  (void)state;
  check_stream(INPUTS, 40, 0.7);
}

/* ---- parameters shared by name ---- */

static const char ONE[] = "phrun-ir 2\ndtype f64\ninput 1 4\nsegment core repeat 5 tied\nparam A 4 4 normal 0.3\nparam "
                          "W 4 4 normal 0.5\nnode 0 state\n"
                          "node 1 skew p0\nnode 2 cayley n1\nnode 3 apply n2 n0\nnode 4 apply p1 n3\nnode 5 tanh "
                          "n4\nresult n5\nend\nloss mse\n";
static const char TWO[] =
    "phrun-ir 2\ndtype f64\ninput 1 4\nsegment core repeat 3 tied\nparam A 4 4 normal 0.3\nparam W 4 4 normal "
    "0.5\nnode 0 state\n"
    "node 1 skew p0\nnode 2 cayley n1\nnode 3 apply n2 n0\nnode 4 apply p1 n3\nnode 5 tanh n4\nresult n5\nend\n"
    "segment core repeat 2 tied\nparam W 4 4 normal 0.5\nparam A 4 4 normal 0.3\nnode 0 state\n"
    "node 1 skew p1\nnode 2 cayley n1\nnode 3 apply n2 n0\nnode 4 apply p0 n3\nnode 5 tanh n4\nresult n5\nend\nloss "
    "mse\n";

/* Five iterations are three and two of the same parameters: one set, one moment, one gradient; whatever the optimizer's path. */
static void test_shared(void **state) {
  (void)state;
  ph_optim wide = ADAM;
  wide.clip = 1e6;
  const ph_optim *const optim[] = {&ADAM, &wide, &(ph_optim){.kind = PH_OPTIM_SGD, .lr = 0.1, .momentum = 0.9}};
  for (int i = 0; i < PH_COUNT(optim); i++) {
    ph_plan *p[2] = {sm_plan(ONE, &(ph_plan_options){.batch = 8}),
                     sm_plan(TWO, &(ph_plan_options){.batch = 8, .threads = 2})};
    ph_ir *ir = sm_ir(ONE);
    sm_set s;
    sm_set_of(&s, ir);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(2, ph_plan_param_count(p[k]));
      assert_int_equal(32, ph_plan_param_total(p[k]));
      ph_plan_init(p[k], 2);
      double first = 0;
      train(p[k], &s, optim[i], 10, &first);
    }
    for (int k = 0; k < 2; k++) {
      ph_tensor *one = NULL;
      ph_tensor *two = NULL;
      ph_err err;
      ph_ok(ph_plan_get(p[0], k, PH_MOMENT_FIRST, &one, &err));
      ph_ok(ph_plan_get(p[1], sm_param(p[1], ph_plan_param_name(p[0], k)), PH_MOMENT_FIRST, &two, &err));
      sm_near(one, two, 1e-12, "another order of the same sums");
      ph_tensor_free(one);
      ph_tensor_free(two);
    }
    sm_set_drop(&s);
    ph_ir_free(ir);
    ph_plan_free(p[0]);
    ph_plan_free(p[1]);
  }
}

/* Three segments of one name, own parameters: some are in all, some in one, some are never used; a stage between them. */
static void test_shared_sets(void **state) {
  (void)state;
  static const char text[] =
      "phrun-ir 2\ndtype f64\ninput 1 4\nsegment core repeat 20\nparam A 4 4 normal 0.3\nparam W 4 4 normal 0.3\nnode "
      "0 state\n"
      "node 1 apply p0 n0\nnode 2 add n0 n1\nnode 3 tanh n2\nresult n3\nend\nsegment s2\nparam A 4 4 normal 0.5\nnode "
      "0 state\n"
      "node 1 apply p0 n0\nresult n1\nend\nsegment core repeat 20\nparam W 4 4 normal 0.3\nparam A 4 4 normal 0.3\n"
      "param b 1 4 normal 0.3\nnode 0 state\nnode 1 gram p1\nnode 2 damping step=0.1 n1\nnode 3 apply n2 n0\nnode 4 "
      "bias n3 p2\n"
      "result n4\nend\nsegment core repeat 20\nparam b 1 4 normal 0.3\nparam W 4 4 normal 0.3\nnode 0 state\nnode 1 "
      "apply p1 n0\n"
      "node 2 bias n1 p0\nnode 3 tanh n2\nresult n3\nend\nloss mse\n";
  check_model(text, &(ph_plan_options){.batch = 4, .threads = 3}, 1);
  ph_plan *p = sm_plan(text, NULL);
  assert_int_equal(4, ph_plan_param_count(p)); /* core.A, core.W, s2.A, core.b */
  ph_plan_free(p);
}

/* ---- tables ---- */

/* x times all numbers of a table of n; `last` is the last, `first` the first, all others are 1. */
static char *product_text(int n, double first, double last) {
  size_t room = 2 * (size_t)n + 512;
  char *text = ph_mem_new(room, 1);
  assert_non_null(text);
  size_t at = (size_t)snprintf(text, room, "phrun-ir 2\ndtype f64\ninput 1 1\nsegment s1 repeat %d tied\ntable t", n);
  for (int i = 0; i < n; i++) {
    at += (size_t)snprintf(text + at, room - at, " %g", i == n - 1 ? last : i == 0 ? first : 1.0);
  }
  snprintf(text + at, room - at, "\nnode 0 state\nnode 1 scale by=@t n0\nresult n1\nend\nloss mse\n");
  return text;
}

static void check_product(int n, double first, double last, double product) {
  char *text = product_text(n, first, last);
  ph_plan *p = sm_plan(text, &(ph_plan_options){.batch = 4, .tape_bytes = 1 << 16});
  sm_set s;
  ph_err err;
  ph_result res;
  sm_set_make(&s, 16, 1, 1, PH_F64);
  ph_tensor *out = sm_blank(SM_SAMPLES, 1);
  ph_tensor *gx = sm_blank(SM_SAMPLES, 1);
  ph_ok(ph_plan_eval(p, &s.data, s.idx, SM_SAMPLES, out, &res, &err));
  ph_ok(ph_plan_grad(p, &s.data, s.idx, SM_SAMPLES, gx, &res, &err));
  for (int r = 0; r < SM_SAMPLES; r++) {
    double x = ph_tensor_get(s.x, s.idx[r]);
    double t = ph_tensor_get(s.t, s.idx[r]);
    ph_near(product * x, ph_tensor_get(out, r), 0, 2.3e-16, "a factor after the other");
    ph_near(2 * product * (product * x - t) / SM_SAMPLES, ph_tensor_get(gx, r), 0, 1e-15, "three roundings more");
  }
  ph_tensor_free(out);
  ph_tensor_free(gx);
  sm_set_drop(&s);
  ph_plan_free(p);
  ph_mem_free(text);
}

static void test_tables(void **state) {
  (void)state;
  check_product(1, 0, 3, 3);
  check_product(2, 5, 3, 15);
  check_product(PH_IR_MAX_REPEAT, 5, 3, 15);
}

/* ---- terms ---- */

/* A model whose loss is its terms alone, on states that no segment after it reads. */
static void test_terms_alone(void **state) {
  (void)state;
  static const char text[] =
      "phrun-ir 2\ndtype f64\ninput 1 4\nsegment s1 repeat 6 tied\nparam A 4 4 normal 0.3\nparam q 1 4 normal "
      "0.5\nnode 0 state\n"
      "node 1 apply p0 n0\nnode 2 apply p1 n1\nnode 3 mul n2 n2\nresult n1\nterm 1 n3\nend\nloss none\n";
  check_model(text, &(ph_plan_options){.batch = 4}, 1);
  ph_ir *ir = sm_ir(text);
  ph_plan *p = sm_plan(text, NULL);
  sm_set s;
  sm_set_of(&s, ir);
  ph_plan_init(p, 1);
  s.data.target = (ph_source){0}; /* nobody asks for it */
  double first = 0;
  double last = train(p, &s, &ADAM, 60, &first);
  assert_true(first > 0 && last < 0.5 * first);
  sm_set_drop(&s);
  ph_plan_free(p);
  ph_ir_free(ir);
}

/* Without a term there is nothing to make small. */
static void test_no_loss(void **state) {
  (void)state;
  static const char text[] = "phrun-ir 1\ndtype f64\ninput 1 4\nsegment once 1\nparam A 4 4 ones\nnode 0 state\n"
                             "node 1 apply p0 n0\nresult n1\nend\nloss none\n";
  ph_plan *p = sm_plan(text, NULL);
  sm_set s;
  ph_err err;
  ph_result res;
  sm_set_make(&s, 16, 4, 4, PH_F64);
  ph_fails(PH_E_ARG, "a gradient needs a loss; the model has neither one nor a term",
           ph_plan_grad(p, &s.data, s.idx, 4, NULL, &res, &err), err);
  sm_set_drop(&s);
  ph_plan_free(p);
}

static ph_status plan_once(const char *text) {
  ph_plan *p = NULL;
  ph_err err;
  ph_status st = ph_plan_new(&p, text, strlen(text), NULL, &err);
  if (!st) {
    ph_plan_free(p);
  }
  return st;
}

static void test_short_memory(void **state) {
  (void)state;
  ph_each_failed_allocation(plan_once(TWO));
  ph_each_failed_allocation(plan_once(INPUTS));
}

static void test_described(void **state) {
  (void)state;
  ph_plan *p = sm_plan(INPUTS, NULL);
  char *text = NULL;
  ph_err err;
  ph_ok(ph_plan_describe(p, &text, &err));
  assert_non_null(strstr(text, "segment s1, a stream of 30 iterations, own parameters, driven\n"));
  assert_non_null(strstr(text, "segment s2, a stage: 1 iteration, own parameters\n"));
  ph_mem_free(text);
  ph_plan_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_random),          PH_TEST(test_random_windows),
                                     PH_TEST(test_random_probed),   PH_TEST(test_random_meets_every_op),
                                     PH_TEST(test_deep_recursion),  PH_TEST(test_rollout),
                                     PH_TEST(test_input_per_layer), PH_TEST(test_shared),
                                     PH_TEST(test_shared_sets),     PH_TEST(test_tables),
                                     PH_TEST(test_terms_alone),     PH_TEST(test_no_loss),
                                     PH_TEST(test_short_memory),    PH_TEST(test_described)};
  return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
