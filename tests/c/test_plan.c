/* test_plan.c - compiled plans: the same bits for any number of threads and any tape, no allocation while running, outcomes that
 * are not finite, rates and probes. What plans compute is in test_streams.c. */
#include "base/pool.h"
#include "slow_model.h"

/* ---- bits, allocation, outcomes ---- */

static const char PH[] =
    "phrun-ir 1\ndtype f32\ninput 1 16\n"
    "segment depth 12\nparam A 16 16 normal 0.1\nparam L 16 16 normal 0.3\nparam B 16 16 normal 0.2\n"
    "param W 16 16 uniform 0.25\nparam b 1 16 uniform 0.25\nnode 0 state\nnode 1 guard step=0.5 budget=1 p1\nnode 2 "
    "gram n1\n"
    "node 3 damping step=0.5 n2\nnode 4 skew p0\nnode 5 cayley n4\nnode 6 apply n5 n0\nnode 7 apply n3 n6\n"
    "node 8 apply p3 n0\nnode 9 bias n8 p4\nnode 10 tanh n9\nnode 11 apply p2 n10\nnode 12 scale by=0.5 n11\n"
    "node 13 add n7 n12\nresult n13\nend\nsegment once 1\nparam W 4 16 uniform 0.25\nparam b 1 4 zeros\nnode 0 state\n"
    "node 1 apply p0 n0\nnode 2 bias n1 p1\nresult n2\nend\nloss softmax_cross_entropy\n";

static const ph_optim ADAM = {.kind = PH_OPTIM_ADAM, .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

static void labelled(sm_set *s, int32_t *label, int64_t n) {
  sm_set_make(s, n, 16, 4, PH_F32);
  for (int i = 0; i < n; i++) {
    label[i] = i % 4;
  }
  s->data = (ph_data){.x = ph_source_rows(s->x), .label = label};
}

static uint64_t bits(const ph_plan *p) {
  uint64_t h = 1469598103934665603ULL;
  ph_err err;
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    for (int slot = PH_MOMENT_VALUE; slot <= PH_MOMENT_SECOND; slot++) {
      ph_tensor *t = NULL;
      ph_ok(ph_plan_get(p, i, (ph_moment)slot, &t, &err));
      for (size_t k = 0; k < ph_tensor_bytes(t); k++) {
        h = (h ^ ((uint8_t *)t->data)[k]) * 1099511628211ULL;
      }
      ph_tensor_free(t);
    }
  }
  return h;
}

static uint64_t train_on(const sm_set *s, const ph_plan_options *o, const ph_optim *optim, double *last) {
  ph_plan *p = sm_plan(PH, o);
  ph_plan_init(p, 5);
  ph_err err;
  ph_result res = {0};
  for (int i = 0; i < 6; i++) {
    ph_ok(ph_plan_step(p, &s->data, s->idx, i % 2 ? 64 : 41, optim, &res, &err)); /* a short batch too */
  }
  uint64_t h = bits(p);
  *last = res.loss;
  ph_plan_free(p);
  return h;
}

static uint64_t train(const ph_plan_options *o, const ph_optim *optim, double *last) {
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  uint64_t h = train_on(&s, o, optim, last);
  sm_set_drop(&s);
  return h;
}

static void test_same_bits(void **state) {
  (void)state;
  double loss = 0;
  double again = 0;
  uint64_t want = train(&(ph_plan_options){.batch = 64, .threads = 1}, &ADAM, &loss);
  static const ph_plan_options o[] = {{.batch = 64, .threads = 2},
                                      {.batch = 64, .threads = 3},
                                      {.batch = 64, .tape_bytes = 20000},
                                      {.batch = 64, .threads = 2, .tape_bytes = 1}};
  for (int i = 0; i < PH_COUNT(o); i++) {
    assert_true(want == train(&o[i], &ADAM, &again));
    assert_true(loss == again);
  }
  assert_true(want != train(&(ph_plan_options){.batch = 64}, &(ph_optim){.kind = PH_OPTIM_SGD, .lr = 0.1}, &again));
}

static float made(int64_t sample, int64_t feature) { return (float)((sample * 31 + feature * 7) % 17 - 8) / 8; }

static void fill_made(const ph_source *from, ph_shape shape, const int32_t *idx, int64_t rows, void *tile) {
  assert_ptr_equal(NULL, from->from);
  for (int64_t q = 0; q < shape.pos; q++) {
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t c = 0; c < shape.cols; c++) {
        ((float *)tile)[(q * rows + r) * shape.cols + c] = made(idx[r], q * shape.cols + c);
      }
    }
  }
}

/* Samples that are made when they are asked for train as those that lie in a tensor. */
static void test_source(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  for (int64_t i = 0; i < ph_tensor_count(s.x); i++) {
    ph_tensor_set(s.x, i, made(i / 16, i % 16));
  }
  ph_plan_options o = {.batch = 64, .threads = 2};
  double loss = 0;
  double again = 0;
  uint64_t want = train_on(&s, &o, &ADAM, &loss);
  s.data.x = (ph_source){.n = 64, .features = 16, .dtype = PH_F32, .fill = fill_made};
  assert_true(want == train_on(&s, &o, &ADAM, &again));
  assert_true(loss == again);
  sm_set_drop(&s);
}

/* A huge clip changes nothing but the path; a small one bounds the gradient. */
static void test_clip(void **state) {
  (void)state;
  double loss = 0;
  double again = 0;
  ph_optim wide = ADAM;
  wide.clip = 1e6;
  uint64_t want = train(&(ph_plan_options){.batch = 64}, &ADAM, &loss);
  assert_true(want == train(&(ph_plan_options){.batch = 64}, &wide, &again));
  ph_optim sgd = {.kind = PH_OPTIM_SGD, .lr = 1, .clip = 1e-3};
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, NULL);
  ph_err err;
  ph_result res;
  ph_tensor *before = NULL;
  ph_tensor *after = NULL;
  ph_ok(ph_plan_get(p, 4, PH_MOMENT_VALUE, &before, &err));
  ph_ok(ph_plan_step(p, &s.data, s.idx, 64, &sgd, &res, &err));
  assert_true(res.grad_norm > 1e-3);
  ph_ok(ph_plan_get(p, 4, PH_MOMENT_VALUE, &after, &err));
  double moved = 0;
  for (int64_t i = 0; i < ph_tensor_count(after); i++) {
    moved += pow(ph_tensor_get(after, i) - ph_tensor_get(before, i), 2);
  }
  assert_true(sqrt(moved) <= 1.01e-3);
  ph_tensor_free(before);
  ph_tensor_free(after);
  ph_plan_free(p);
  sm_set_drop(&s);
}

/* How far parameter i of the model moves in one step with these rates. */
static double moved(int i, const ph_rates *rates, const ph_optim *o, ph_result *res) {
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, NULL);
  ph_err err;
  ph_tensor *before = NULL;
  ph_tensor *after = NULL;
  ph_plan_set_rates(p, i, rates);
  ph_ok(ph_plan_get(p, i, PH_MOMENT_VALUE, &before, &err));
  ph_ok(ph_plan_step(p, &s.data, s.idx, 64, o, res, &err));
  ph_ok(ph_plan_get(p, i, PH_MOMENT_VALUE, &after, &err));
  double sum = 0;
  for (int64_t k = 0; k < ph_tensor_count(after); k++) {
    sum += pow(ph_tensor_get(after, k) - ph_tensor_get(before, k), 2);
  }
  ph_tensor_free(before);
  ph_tensor_free(after);
  ph_plan_free(p);
  sm_set_drop(&s);
  return sqrt(sum);
}

/* A factor scales a parameter's step, a frozen one stays to the bit and leaves the clipped norm, decay is its own. */
static void test_rates(void **state) {
  (void)state;
  ph_result all;
  ph_result one;
  ph_optim sgd = {.kind = PH_OPTIM_SGD, .lr = 0.5, .clip = 1e6};
  double full = moved(0, &(ph_rates){1, NAN, false}, &sgd, &all);
  assert_true(full > 0);
  double tenth = moved(0, &(ph_rates){0.1, NAN, false}, &sgd, &one);
  assert_true(fabs(tenth - 0.1 * full) < 1e-4 * full); /* float32: values near 0.1 move by about 1e-3 */
  assert_true(one.grad_norm == all.grad_norm);
  assert_true(moved(0, &(ph_rates){1, NAN, true}, &sgd, &one) == 0.0);
  assert_true(one.grad_norm < all.grad_norm);
  double adam = moved(0, &(ph_rates){1, NAN, false}, &ADAM, &one);
  double decayed = moved(0, &(ph_rates){1, 10, false}, &ADAM, &one);
  assert_true(decayed > 1.01 * adam);
  ph_optim heavy = ADAM;
  heavy.weight_decay = 10;
  assert_true(moved(0, &(ph_rates){1, NAN, false}, &heavy, &one) == decayed);
  assert_true(moved(0, &(ph_rates){1, 0, false}, &heavy, &one) == adam);
}

static void test_learns(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, NULL);
  ph_err err;
  ph_result res;
  for (int i = 0; i < 120; i++) {
    ph_ok(ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err));
  }
  assert_true(res.loss < 0.05 && res.hits == 64); /* 64 random points in 16 dimensions are separable */
  ph_plan_free(p);
  sm_set_drop(&s);
}

static void test_no_allocation(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, &(ph_plan_options){.batch = 64, .threads = 2});
  ph_err err;
  ph_result res;
  int64_t before = ph_mem_now().calls;
  for (int i = 0; i < 3; i++) {
    ph_ok(ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err));
    ph_ok(ph_plan_eval(p, &s.data, s.idx, 64, NULL, &res, &err));
  }
  assert_int_equal(before, ph_mem_now().calls);
  ph_plan_free(p);
  sm_set_drop(&s);
}

/* Weights that overflow at layer 9: the step says where and changes nothing. */
static void test_diverged(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, NULL);
  ph_err err;
  ph_tensor *B = NULL;
  ph_ok(ph_plan_get(p, 2, PH_MOMENT_VALUE, &B, &err));
  for (int64_t i = 0; i < 256; i++) {
    ph_tensor_set(B, 8 * 256 + i, 3e38);
  }
  ph_ok(ph_plan_set(p, 2, PH_MOMENT_VALUE, B, &err));
  ph_plan_refresh(p);
  uint64_t before = bits(p);
  ph_result res;
  ph_ok(ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err));
  assert_false(res.finite);
  assert_int_equal(0, res.bad_segment);
  assert_in_range(res.bad_step, 8, 9); /* where the sum of sixteen products overflows, or the product after it */
  assert_true(before == bits(p));
  assert_int_equal(0, ph_plan_steps(p));
  ph_tensor_free(B);
  ph_plan_free(p);
  sm_set_drop(&s);
}

/* An inverse that is only read: states stay finite, so the place comes from the parameter values. */
static const char SINGULAR[] =
    "phrun-ir 1\ndtype f64\ninput 5 3\nsegment time 5\nwidth 3\nparam L 3 3 constant 1\nnode 0 input\nnode 1 gram p0\n"
    "node 2 inverse n1\nnode 3 apply n2 n0\nresult n0\nread n3\nend\nloss mse\n";

/* A singular matrix ends a step: the result says where and why, nothing changes. */
static void test_singular(void **state) {
  (void)state;
  sm_set s;
  sm_set_make(&s, 8, 15, 15, PH_F64);
  ph_plan *p = sm_plan(SINGULAR, NULL);
  ph_err err;
  ph_result res;
  ph_plan_init(p, 1);
  uint64_t before = bits(p);
  ph_ok(ph_plan_step(p, &s.data, s.idx, 8, &ADAM, &res, &err));
  assert_false(res.finite);
  assert_int_equal(0, res.bad_segment);
  assert_int_equal(0, res.bad_step);
  assert_ptr_equal(ph_op_find("inverse"), res.bad_op);
  assert_string_equal("inverse of a singular matrix", res.bad_op->failure);
  assert_true(before == bits(p));
  ph_plan_free(p);
  sm_set_drop(&s);
}

static void test_interrupt(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, NULL);
  uint64_t before = bits(p);
  ph_err err;
  ph_result res;
  ph_interrupt_set(1);
  ph_fails(PH_E_INTERRUPTED, "interrupted", ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err), err);
  ph_interrupt_set(0);
  assert_true(before == bits(p));
  ph_ok(ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err));
  ph_plan_free(p);
  sm_set_drop(&s);
}

static void test_refusals(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, &(ph_plan_options){.batch = 32});
  ph_err err;
  ph_result res;
  ph_fails(PH_E_ARG, "a step takes 1..32 samples, got 64", ph_plan_step(p, &s.data, s.idx, 64, &ADAM, &res, &err), err);
  label[s.idx[3]] = 4;
  ph_fails(PH_E_ARG, "outside 0..3", ph_plan_step(p, &s.data, s.idx, 32, &ADAM, &res, &err), err);
  label[s.idx[3]] = 0;
  int32_t far[1] = {64};
  ph_fails(PH_E_ARG, "sample number 65 is outside 1..64", ph_plan_eval(p, &s.data, far, 1, NULL, &res, &err), err);
  ph_data narrow = {.x = ph_source_rows(s.t), .label = label};
  ph_fails(PH_E_SHAPE, "(n, 16), got", ph_plan_eval(p, &narrow, s.idx, 1, NULL, &res, &err), err);
  ph_data bare = {.x = ph_source_rows(s.x)};
  ph_fails(PH_E_ARG, "needs labels", ph_plan_eval(p, &bare, s.idx, 1, NULL, &res, &err), err);
  ph_tensor *t = NULL;
  ph_ok(ph_plan_get(p, 0, PH_MOMENT_VALUE, &t, &err));
  ph_tensor_set(t, 5, NAN);
  ph_fails(PH_E_NONFINITE, "s1.A: element 6", ph_plan_set(p, 0, PH_MOMENT_VALUE, t, &err), err);
  ph_fails(PH_E_NOTFOUND, "s1.cayley", ph_plan_param_value(p, "s1.caylee", &t, &err), err);
  ph_tensor_free(t);
  ph_plan_free(p);
  sm_set_drop(&s);
}

/* Norms of states and cotangents, and the norm ceiling of a trained-like net (docs/laws.md, eq. 3). */
static void test_probe(void **state) {
  (void)state;
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, &(ph_plan_options){.batch = 32, .probe = true, .threads = 2});
  ph_err err;
  ph_result res;
  ph_tensor *norm = sm_blank(64, 13);
  ph_tensor *port = sm_blank(64, 12);
  ph_tensor *grad = sm_blank(1, 13);
  ph_probe probe = {.segment = 0, .state = norm, .port = port, .grad = grad};
  ph_ok(ph_plan_probe(p, &s.data, s.idx, 64, &probe, &res, &err));
  for (int r = 0; r < 64; r++) {
    double bound = ph_tensor_get(norm, r * 13);
    double first = 0;
    for (int c = 0; c < 16; c++) {
      first += pow(ph_tensor_get(s.x, s.idx[r] * 16 + c), 2);
    }
    ph_near(sqrt(first), bound, 0, 1e-6, "the first state is the sample");
    for (int l = 0; l < 12; l++) {
      bound += ph_tensor_get(port, r * 12 + l);
      assert_true(ph_tensor_get(norm, r * 13 + l + 1) <= bound * (1 + 1e-5));
    }
  }
  ph_tensor *gx = NULL;
  ph_ok(ph_tensor_new(&gx, PH_F32, 2, (int64_t[]){64, 16}, &err));
  ph_ok(ph_plan_grad(p, &s.data, s.idx, 64, gx, &res, &err));
  double sum = 0;
  for (int64_t i = 0; i < 64 * 16; i++) {
    sum += pow(ph_tensor_get(gx, i), 2);
  }
  ph_near(sqrt(sum), ph_tensor_get(grad, 0), 0, 1e-5, "the input is the first state, float32");
  ph_tensor_free(gx);
  ph_tensor_free(norm);
  ph_tensor_free(port);
  ph_tensor_free(grad);
  ph_plan_free(p);
  sm_set_drop(&s);
}

static char *program_of_stage(bool probe) {
  ph_plan *p = sm_plan(PH, &(ph_plan_options){.batch = 32, .probe = probe});
  char *text = NULL;
  ph_err err;
  ph_ok(ph_plan_describe(p, &text, &err));
  char *stage = strstr(text, "segment s2");
  assert_non_null(stage);
  stage = ph_mem_strdup(stage);
  ph_mem_free(text);
  ph_plan_free(p);
  return stage;
}

/* Only streams have ports: a stage is the same program whether the plan is probed or not, and gives the same bits. */
static void test_stage_unprobed(void **state) {
  (void)state;
  char *plain = program_of_stage(false);
  char *probed = program_of_stage(true);
  assert_string_equal(plain, probed);
  ph_mem_free(plain);
  ph_mem_free(probed);
  sm_set s;
  int32_t label[64];
  labelled(&s, label, 64);
  ph_plan *p = sm_plan(PH, &(ph_plan_options){.batch = 32, .probe = true});
  ph_tensor *port = sm_blank(64, 1);
  ph_probe probe = {.segment = 1, .port = port};
  ph_result res;
  ph_err err;
  ph_fails(PH_E_ARG, "segment 2 is a stage", ph_plan_probe(p, &s.data, s.idx, 64, &probe, &res, &err), err);
  ph_tensor_free(port);
  ph_plan_free(p);
  sm_set_drop(&s);
}

static ph_status plan_once(void) {
  ph_plan *p = NULL;
  ph_err err;
  ph_status st = ph_plan_new(&p, PH, sizeof PH - 1, NULL, &err);
  if (!st) {
    ph_plan_free(p);
  }
  return st;
}

static void test_short_memory(void **state) {
  (void)state;
  ph_each_failed_allocation(plan_once());
}

static void test_described(void **state) {
  (void)state;
  ph_plan *p = sm_plan(PH, NULL);
  char *text = NULL;
  ph_err err;
  ph_ok(ph_plan_describe(p, &text, &err));
  assert_non_null(strstr(text, "adjoint of cayley"));
  assert_non_null(strstr(text, "(32 x 16, product 1 + bias)"));
  ph_mem_free(text);
  ph_cost c;
  ph_plan_cost(p, &c);
  assert_int_equal(12 * (4 * 256 + 16) + 4 * 17, ph_plan_param_total(p));
  assert_true(c.flops_stream > 12 * 18.0 * 256 && c.flops_stream < 1.3 * 12 * 18 * 256); /* 18 d^2 a sample and layer */
  ph_plan_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_same_bits),     PH_TEST(test_clip),          PH_TEST(test_learns),
                                     PH_TEST(test_no_allocation), PH_TEST(test_diverged),      PH_TEST(test_singular),
                                     PH_TEST(test_interrupt),     PH_TEST(test_refusals),      PH_TEST(test_probe),
                                     PH_TEST(test_short_memory),  PH_TEST(test_described),     PH_TEST(test_rates),
                                     PH_TEST(test_source),        PH_TEST(test_stage_unprobed)};
  return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
