/* test_fixtures.c - ops and whole nets against an independent numpy program (tests/golden/make_golden.py).
 *
 * Tolerances are relative to the largest entry of each array: 1e-12 for values and 1e-11 for gradients at d <= 64, which is
 * what float64 gives after a few products of that length; exact edge cases carry their own `atol`.
 */
#include "base/tensor.h"
#include "engine/run/plan.h"
#include "ir/op.h"
#include "ph_test.h"
#include "store/store.h"

#define GOLDEN(name) PHRUN_TEST_DIR "/golden/" name ".h5"

static ph_reader *open_golden(const char *file) {
  ph_reader *r = NULL;
  ph_err err;
  if (ph_reader_open(&r, file, &err)) {
    fail_msg("%s", err.text);
  }
  return r;
}

static ph_tensor *load(ph_reader *r, const char *group, const char *name) {
  char path[160];
  ph_err err;
  ph_tensor *t = NULL;
  snprintf(path, sizeof path, "%s/%s", group, name);
  if (ph_reader_tensor(r, path, &t, &err)) {
    fail_msg("%s: %s", path, err.text);
  }
  return t;
}

static double attr(ph_reader *r, const char *group, const char *name) {
  double v = 0;
  ph_err err;
  if (ph_reader_attr_f64(r, group, name, &v, &err)) {
    int64_t i = 0;
    if (ph_reader_attr_i64(r, group, name, &i, &err)) {
      fail_msg("%s@%s: %s", group, name, err.text);
    }
    v = (double)i;
  }
  return v;
}

static void same(const ph_tensor *want, const ph_tensor *got, double rtol, double atol, const char *what) {
  assert_int_equal(ph_tensor_count(want), ph_tensor_count(got));
  double top = 0;
  double worst = 0;
  for (int64_t i = 0; i < ph_tensor_count(want); i++) {
    double w = ph_tensor_get(want, i);
    double e = fabs(w - ph_tensor_get(got, i));
    top = fabs(w) > top ? fabs(w) : top;
    worst = e > worst || isnan(e) ? e : worst;
  }
  if (!(worst <= rtol * top + atol)) {
    fail_msg("%s: worst error %g, largest entry %g", what, worst, top);
  }
}

typedef struct trial { /* an op on loaded tensors, checked against loaded results */
  ph_reader *r;
  const char *group;
  double rtol, atol;
} trial;

static void check_op(const trial *t, const char *op, const char *in, const char *in2, const double *attrs,
                     const char *out, const char *cot, const char *grad, const char *grad2) {
  ph_err err;
  ph_tensor *arg[2] = {load(t->r, t->group, in), in2 ? load(t->r, t->group, in2) : NULL};
  bool sample[2] = {false, false};
  const ph_op *o = ph_op_find(op);
  ph_tensor *got = NULL;
  if (ph_op_eager(o, in2 ? 2 : 1, (const ph_tensor *const *)arg, sample, attrs, &got, &err)) {
    fail_msg("%s: %s", op, err.text);
  }
  char what[200];
  snprintf(what, sizeof what, "%s %s", t->group, out);
  if (out) {
    ph_tensor *want = load(t->r, t->group, out);
    same(want, got, t->rtol, t->atol, what);
    ph_tensor_free(want);
  }
  if (cot) {
    ph_tensor *g = load(t->r, t->group, cot);
    ph_tensor *gin[2] = {0};
    ph_ok(ph_op_eager_bwd(o, in2 ? 2 : 1, (const ph_tensor *const *)arg, sample, attrs, g, gin, &err));
    const char *name[2] = {grad, grad2};
    for (int i = 0; i < 2; i++) {
      if (name[i]) {
        ph_tensor *want = load(t->r, t->group, name[i]);
        snprintf(what, sizeof what, "%s %s", t->group, name[i]);
        same(want, gin[i], 10 * t->rtol, t->atol, what);
        ph_tensor_free(want);
      }
      ph_tensor_free(gin[i]);
    }
    ph_tensor_free(g);
  }
  ph_tensor_free(got);
  ph_tensor_free(arg[0]);
  ph_tensor_free(arg[1]);
}

static void test_layer(void **state) {
  (void)state;
  static const int width[] = {1, 2, 3, 8, 17, 32, 64};
  ph_reader *r = open_golden(GOLDEN("layer"));
  for (int i = 0; i < PH_COUNT(width); i++) {
    char group[32];
    snprintf(group, sizeof group, "/d%03d", width[i]);
    trial t = {r, group, 1e-12, 1e-15};
    double h[PH_OP_ATTRS] = {attr(r, group, "h"), 0};
    double none[PH_OP_ATTRS] = {0};
    check_op(&t, "skew", "A", NULL, none, "S", NULL, NULL, NULL);
    check_op(&t, "gram", "L", NULL, none, "R", NULL, NULL, NULL);
    check_op(&t, "cayley", "S", NULL, none, "C", "GC", "gS", NULL);
    check_op(&t, "skew", "A", NULL, none, NULL, "gS", "gA", NULL);
    check_op(&t, "damping", "R", NULL, h, "Lam", "GLam", "gR", NULL);
    check_op(&t, "gram", "L", NULL, none, NULL, "gR", "gL", NULL);
    check_op(&t, "matmul", "Lam", "C", none, "M", NULL, NULL, NULL);
  }
  ph_reader_close(r);
}

static void test_edge(void **state) {
  (void)state;
  static const char *const name[] = {"/R0",    "/S0",    "/all0",       "/R4I",       "/hr2", "/Rdeficient",
                                     "/Rhuge", "/Stiny", "/Shuge_even", "/Shuge_odd", "/d1"};
  ph_reader *r = open_golden(GOLDEN("laws_edge"));
  for (int i = 0; i < PH_COUNT(name); i++) {
    trial t = {r, name[i], 0, attr(r, name[i], "atol")};
    double h[PH_OP_ATTRS] = {attr(r, name[i], "h"), 0};
    double none[PH_OP_ATTRS] = {0};
    check_op(&t, "cayley", "S", NULL, none, "C", NULL, NULL, NULL);
    check_op(&t, "damping", "R", NULL, h, "Lam", NULL, NULL, NULL);
    check_op(&t, "matmul", "Lam", "C", none, "M", NULL, NULL, NULL);
  }
  ph_reader_close(r);
}

static double inner(const ph_tensor *a, const double *b) {
  double sum = 0;
  for (int64_t i = 0; i < ph_tensor_count(a); i++) {
    sum += ph_tensor_get(a, i) * b[i];
  }
  return sum;
}

/* Where the gradient is a set, ours is the basis-free choice on the active side and the no-op branch on the kink. */
static void test_guard(void **state) {
  (void)state;
  static const char *const name[] = {"/inactive_trace", "/inactive_eig", "/active",       "/active_rank1",     "/zero",
                                     "/boundary",       "/repeated2",    "/repeated_all", "/boundary_repeated"};
  ph_reader *r = open_golden(GOLDEN("guard"));
  for (int i = 0; i < PH_COUNT(name); i++) {
    trial t = {r, name[i], 1e-12, 1e-14};
    double a[PH_OP_ATTRS] = {attr(r, name[i], "h"), 1.0};
    bool unique = attr(r, name[i], "unique_gradient") != 0;
    bool active = attr(r, name[i], "active") != 0;
    check_op(&t, "guard", "L", NULL, a, "Leff", "GLe", unique || !active ? "gL" : "gL_projector", NULL);
  }
  ph_reader_close(r);
}

static void test_guard_invariants(void **state) {
  (void)state;
  ph_reader *r = open_golden(GOLDEN("guard"));
  ph_err err;
  ph_tensor *L = load(r, "/active", "L");
  ph_tensor *G = load(r, "/active", "GLe");
  ph_tensor *g = NULL;
  double a[PH_OP_ATTRS] = {attr(r, "/active", "h"), 1.0};
  bool sample[1] = {false};
  ph_ok(ph_op_eager_bwd(ph_op_find("guard"), 1, (const ph_tensor *const *)&L, sample, a, G, &g, &err));
  ph_near(0, inner(L, g->data), 1e-13, 0, "L_eff does not depend on the scale of L: <G_L, L> = 0");
  ph_tensor *out = NULL;
  ph_tensor *small = load(r, "/inactive_eig", "L");
  a[0] = attr(r, "/inactive_eig", "h");
  ph_ok(ph_op_eager(ph_op_find("guard"), 1, (const ph_tensor *const *)&small, sample, a, &out, &err));
  assert_memory_equal(small->data, out->data, ph_tensor_bytes(out));
  ph_tensor_free(L);
  ph_tensor_free(G);
  ph_tensor_free(g);
  ph_tensor_free(out);
  ph_tensor_free(small);
  ph_reader_close(r);
}

/* ---- the trainable net ---- */

static const char NET[] =
    "phrun-ir 1\ndtype f64\ninput 1 2\n"
    "segment once 1\nparam W 8 2 zeros\nparam b 1 8 zeros\nnode 0 state\nnode 1 apply p0 n0\nnode 2 bias n1 p1\n"
    "result n2\nend\n"
    "segment depth 6\nparam A 8 8 zeros\nparam L 8 8 zeros\nparam B 8 8 zeros\nparam W 8 8 zeros\nparam b 1 8 zeros\n"
    "node 0 state\nnode 1 guard step=0.25 budget=1 p1\nnode 2 gram n1\nnode 3 damping step=0.25 n2\nnode 4 skew p0\n"
    "node 5 cayley n4\nnode 6 apply n5 n0\nnode 7 apply n3 n6\nnode 8 apply p3 n0\nnode 9 bias n8 p4\nnode 10 tanh n9\n"
    "node 11 apply p2 n10\nnode 12 scale by=0.25 n11\nnode 13 add n7 n12\nresult n13\nend\n"
    "segment once 1\nparam W 4 8 zeros\nparam b 1 4 zeros\nnode 0 state\nnode 1 apply p0 n0\nnode 2 bias n1 p1\n"
    "result n2\nend\nloss softmax_cross_entropy\n";

static void set_param(ph_plan *p, const char *name, ph_reader *r, const char *group, const char *from) {
  ph_err err;
  ph_tensor *t = load(r, group, from);
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    if (strcmp(ph_plan_param_name(p, i), name) == 0 && ph_plan_set(p, i, PH_MOMENT_VALUE, t, &err)) {
      fail_msg("%s: %s", name, err.text);
    }
  }
  ph_tensor_free(t);
}

static void check_grad(ph_plan *p, const char *name, ph_reader *r, const char *group, const char *from) {
  ph_err err;
  ph_tensor *want = load(r, group, from);
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    if (strcmp(ph_plan_param_name(p, i), name) == 0) {
      ph_tensor *got = NULL;
      ph_ok(ph_plan_get(p, i, PH_MOMENT_GRAD, &got, &err));
      same(want, got, 1e-11, 1e-16, from);
      ph_tensor_free(got);
    }
  }
  ph_tensor_free(want);
}

static ph_tensor *transposed(ph_tensor *t) {
  ph_tensor *out = NULL;
  ph_err err;
  ph_ok(ph_tensor_new(&out, PH_F64, 2, (int64_t[]){t->dim[1], t->dim[0]}, &err));
  for (int64_t i = 0; i < t->dim[0]; i++) {
    for (int64_t j = 0; j < t->dim[1]; j++) {
      ph_tensor_set(out, j * t->dim[0] + i, ph_tensor_get(t, i * t->dim[1] + j));
    }
  }
  ph_tensor_free(t);
  return out;
}

static const char *const PARAM[][3] = {{"s1.W", "We", "gWe"}, {"s1.b", "be", "gbe"}, {"s2.A", "A", "gA"},
                                       {"s2.L", "L", "gL"},   {"s2.B", "B", "gB"},   {"s2.W", "W", "gW"},
                                       {"s2.b", "b", "gb"},   {"s3.W", "Wo", "gWo"}, {"s3.b", "bo", "gbo"}};

static void check_net(ph_reader *r, const char *group, const ph_plan_options *o) {
  ph_err err;
  ph_plan *p = NULL;
  if (ph_plan_new(&p, NET, sizeof NET - 1, o, &err)) {
    fail_msg("%s", err.text);
  }
  for (int i = 0; i < PH_COUNT(PARAM); i++) {
    set_param(p, PARAM[i][0], r, group, PARAM[i][1]);
  }
  ph_plan_refresh(p);
  ph_tensor *x = transposed(load(r, group, "X"));
  ph_tensor *y = load(r, group, "y");
  ph_tensor *gx = NULL;
  ph_ok(ph_tensor_new(&gx, PH_F64, 2, x->dim, &err));
  int32_t label[8];
  int32_t idx[8];
  int n = (int)x->dim[0];
  for (int i = 0; i < n; i++) {
    label[i] = (int32_t)ph_tensor_get(y, i);
    idx[i] = i;
  }
  ph_data data = {.x = ph_source_rows(x), .label = label};
  ph_result res;
  if (ph_plan_grad(p, &data, idx, n, gx, &res, &err)) {
    fail_msg("%s", err.text);
  }
  ph_near(attr(r, group, "loss"), res.loss, 1e-14, 1e-13, "a mean of five numbers of order one");
  for (int i = 0; i < PH_COUNT(PARAM); i++) {
    check_grad(p, PARAM[i][0], r, group, PARAM[i][2]);
  }
  ph_tensor *want = transposed(load(r, group, "gX"));
  same(want, gx, 1e-11, 1e-16, "gX");
  ph_tensor_free(want);
  ph_tensor_free(x);
  ph_tensor_free(y);
  ph_tensor_free(gx);
  ph_plan_free(p);
}

static void test_net(void **state) {
  (void)state;
  ph_reader *r = open_golden(GOLDEN("net"));
  static const ph_plan_options o[] = {{.batch = 5},                /* 2d > rows: transport and damping applied apart */
                                      {.batch = 64, .threads = 2}, /* merged into one matrix */
                                      {.batch = 2},                /* three rounds */
                                      {.batch = 64, .tape_bytes = 1024}, /* kept states and recomputation */
                                      {.batch = 64, .probe = true}};
  for (int i = 0; i < PH_COUNT(o); i++) {
    check_net(r, "/guard_inactive", &o[i]);
    check_net(r, "/guard_active", &o[i]);
  }
  ph_reader_close(r);
}

static void test_layernorm(void **state) {
  (void)state;
  ph_reader *r = open_golden(GOLDEN("layernorm"));
  ph_err err;
  ph_tensor *arg[3] = {transposed(load(r, "", "x")), load(r, "", "gamma"), load(r, "", "beta")};
  ph_tensor *want[3] = {transposed(load(r, "", "gx")), load(r, "", "ggamma"), load(r, "", "gbeta")};
  ph_tensor *y = transposed(load(r, "", "y"));
  ph_tensor *gy = transposed(load(r, "", "gy"));
  ph_tensor *out = NULL;
  ph_tensor *g[3] = {0};
  bool sample[3] = {true, false, false};
  double a[PH_OP_ATTRS] = {attr(r, "/", "eps"), 0};
  const ph_op *op = ph_op_find("layernorm");
  ph_ok(ph_op_eager(op, 3, (const ph_tensor *const *)arg, sample, a, &out, &err));
  same(y, out, 1e-12, 0, "layernorm y");
  ph_ok(ph_op_eager_bwd(op, 3, (const ph_tensor *const *)arg, sample, a, gy, g, &err));
  for (int i = 0; i < 3; i++) {
    same(want[i], g[i], 1e-11, 1e-16, "layernorm gradient");
    ph_tensor_free(arg[i]);
    ph_tensor_free(want[i]);
    ph_tensor_free(g[i]);
  }
  ph_tensor_free(y);
  ph_tensor_free(gy);
  ph_tensor_free(out);
  ph_reader_close(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_layer),     PH_TEST(test_edge),
                                     PH_TEST(test_guard),     PH_TEST(test_guard_invariants),
                                     PH_TEST(test_layernorm), PH_TEST(test_net)};
  return cmocka_run_group_tests_name("fixtures", tests, NULL, NULL);
}
