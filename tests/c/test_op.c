/* test_op.c - every row of the op table: adjoint against central differences in float64, what it promises, documentation. */
#include "op_case.h"

static ph_tensor *random_tensor(const char *name, int rank, int64_t a, int64_t b, double scale) {
  ph_tensor *t = NULL;
  ph_err err;
  ph_ok(ph_tensor_new(&t, PH_F64, rank, (int64_t[]){a, b}, &err));
  ph_rng_fill_normal(ph_rng_of(7, name), 0, scale, t);
  return t;
}

/* ---- every row, on parameters and on states, with positions in every form ---- */

typedef void each_fn(const op_case *c, int64_t d);

/* Returns how many cases the op takes. */
static int each_case(const ph_op *op, int64_t d, each_fn *fn) {
  int cases = 0;
  for (int states = 0; states <= op_case_has(op, "xa"); states++) {
    bool samples = states || op_case_has(op, "s");
    for (int form = 0; form < (samples ? OP_FORMS : 1); form++) {
      op_case c;
      if (op_case_make(&c, op, d, form, states)) {
        fn(&c, d);
        cases++;
      }
      op_case_drop(&c);
    }
  }
  return cases;
}

static void each_row(each_fn *fn) {
  static const int64_t width[] = {1, 2, 3, 7, 15, 16, 17, 33};
  for (int i = 0; i < ph_op_count(); i++) {
    int cases = 0;
    for (int k = 0; ph_op_at(i)->shape && k < PH_COUNT(width); k++) {
      cases += each_case(ph_op_at(i), width[k], fn);
    }
    assert_true(cases > 0 || !ph_op_at(i)->shape);
  }
}

static double value(const op_case *c, const ph_tensor *g) {
  ph_tensor *out = op_case_run(c, c->op);
  double sum = 0;
  for (int64_t i = 0; i < ph_tensor_count(out); i++) {
    sum += ph_tensor_get(out, i) * ph_tensor_get(g, i);
  }
  ph_tensor_free(out);
  return sum;
}

/* t += h dir */
static void move(ph_tensor *t, double h, const ph_tensor *dir) {
  for (int64_t i = 0; i < ph_tensor_count(dir); i++) {
    ph_tensor_set(t, i, ph_tensor_get(t, i) + h * ph_tensor_get(dir, i));
  }
}

/* Directional derivative along a random direction of every argument. */
static void check_adjoint(const op_case *c, int64_t d) {
  ph_tensor *g = op_case_cotangent(c);
  ph_tensor *gin[PH_OP_ARGS] = {0};
  op_case_back(c, c->op, g, gin);
  for (int a = 0; a < c->nargs; a++) {
    ph_tensor *dir = op_case_tensor("direction", c->arg[a]->rank, c->arg[a]->dim);
    double want = 0;
    for (int64_t i = 0; i < ph_tensor_count(dir); i++) {
      want += ph_tensor_get(gin[a], i) * ph_tensor_get(dir, i);
    }
    double h = 1e-5;
    move(c->arg[a], h, dir);
    double up = value(c, g);
    move(c->arg[a], -2 * h, dir);
    double got = (up - value(c, g)) / (2 * h);
    move(c->arg[a], h, dir);
    if (!(fabs(got - want) <=
          1e-6 * (fabs(want) + (double)d))) { /* h^2 truncation and eps/h rounding of a sum of d terms */
      fail_msg("%s: argument %d, d = %lld: derivative %.10g, adjoint %.10g", c->op->name, a + 1, (long long)d, got,
               want);
    }
    ph_tensor_free(dir);
    ph_tensor_free(gin[a]);
  }
  ph_tensor_free(g);
}

static void test_adjoints(void **state) {
  (void)state;
  each_row(check_adjoint);
}

/* ---- what a row promises about its functions ---- */

static void poison(ph_opnd *o, ph_shape s, bool needed) {
  static double nan[1 << 14];
  memset(nan, 0xff, sizeof nan);
  assert_true(s.rows * s.cols <= PH_COUNT(nan));
  o->p = needed ? o->p : nan;
}

/* Every cotangent when it is wanted alone or with the others but one. */
static void each_but_one(const ph_call *call) {
  int n = ph_op_nargs(call->op);
  for (int i = 0; i < n; i++) {
    ph_call c = *call;
    c.gin[i].p = n > 1 ? NULL : c.gin[i].p;
    c.op->bwd(&c);
  }
}

/* Backward twice, with everything it does not need poisoned and scratch full of NaN: leaving out what is not wanted, then added to
 * what is there. */
static void hostile_bwd(const ph_call *call) {
  ph_call c = *call;
  const ph_op *tried = c.op = ph_op_find(c.op->name);
  ph_needs need = ph_op_needs(&c);
  for (int64_t i = 0; i < need.scratch; i++) {
    ((double *)c.scratch)[i] = NAN;
  }
  poison(&c.out, c.out_shape, tried->need & PH_NEED_OUT);
  for (int i = 0; i < ph_op_nargs(tried); i++) {
    poison(&c.in[i], c.in_shape[i], tried->need & 1U << i);
  }
  each_but_one(&c);
  for (int i = 0; i < ph_op_nargs(tried); i++) {
    c.acc[i] = true;
  }
  tried->bwd(&c);
}

static void hostile_fwd(const ph_call *call) {
  ph_call c = *call;
  c.op = ph_op_find(c.op->name);
  for (int64_t i = 0; i < ph_op_needs(&c).scratch; i++) {
    ((double *)c.scratch)[i] = NAN;
  }
  c.op->fwd(&c);
}

/* Twice the cotangents come out, of the same values. */
static void check_promises(const op_case *c, int64_t d) {
  (void)d;
  if (!c->op->bwd) {
    return;
  }
  ph_op hostile = *c->op;
  hostile.fwd = hostile_fwd;
  hostile.bwd = hostile_bwd;
  ph_tensor *g = op_case_cotangent(c);
  ph_tensor *once[PH_OP_ARGS] = {0};
  ph_tensor *twice[PH_OP_ARGS] = {0};
  op_case_back(c, c->op, g, once);
  op_case_back(c, &hostile, g, twice);
  for (int a = 0; a < c->nargs; a++) {
    for (int64_t i = 0; i < ph_tensor_count(once[a]); i++) {
      ph_near(2 * ph_tensor_get(once[a], i), ph_tensor_get(twice[a], i), 1e-12, 1e-12,
              "one order of a sum or the other");
    }
    ph_tensor_free(once[a]);
    ph_tensor_free(twice[a]);
  }
  ph_tensor_free(g);
}

/* Backward reads what `need` says and no more, leaves out what is not wanted, adds where it is asked to; scratch may hold anything. */
static void test_promises(void **state) {
  (void)state;
  each_row(check_promises);
}

/* at_zero, output_bound and lipschitz are true; the constant is not more than a hundredth too large, or the slope grows. */
static void test_elementwise_claims(void **state) {
  (void)state;
  enum { N = 4001 };
  for (int k = 0; k < ph_op_count(); k++) {
    const ph_op *op = ph_op_at(k);
    if (op->gain != PH_GAIN_LIPSCHITZ) {
      continue;
    }
    op_case c = {.op = op, .nargs = 1, .arg = {op_case_tensor("x", 2, (int64_t[]){1, N})}};
    ph_tensor *g = op_case_tensor("g", 2, (int64_t[]){1, N});
    for (int64_t i = 0; i < N; i++) {
      ph_tensor_set(c.arg[0], i, 0.005 * (double)(i - N / 2));
      ph_tensor_set(g, i, 1);
    }
    ph_tensor *y = op_case_run(&c, op);
    ph_tensor *slope[1] = {0};
    op_case_back(&c, op, g, slope);
    double top = 0;
    double steepest = 0;
    for (int64_t i = 0; i < N; i++) {
      top = fmax(top, fabs(ph_tensor_get(y, i)));
      steepest = fmax(steepest, fabs(ph_tensor_get(slope[0], i)));
    }
    ph_near(op->at_zero, ph_tensor_get(y, N / 2), 1e-15, 0, "a few roundings");
    assert_true(steepest <= op->lipschitz);
    assert_true(steepest >= (isinf(op->lipschitz) ? 19 : 0.99 * op->lipschitz));
    assert_true(op->output_bound == 0 ? top > 9 : top <= op->output_bound && top >= 0.9 * op->output_bound);
    ph_tensor_free(y);
    ph_tensor_free(slope[0]);
    ph_tensor_free(g);
    op_case_drop(&c);
  }
}

/* Positions on one axis, on two, and as samples of their own: a map on features gives the same bits, each in its form. */
static void test_positions(void **state) {
  (void)state;
  enum { D = 5 };
  static const int64_t form[][PH_RANK_MAX] = {{12, D}, {3, 4, D}, {3, 2, 2, D}};
  const ph_op *op = ph_op_find("layernorm");
  const double attr[PH_OP_ATTRS] = {1e-3};
  const bool sample[3] = {true, false, false};
  ph_tensor *first[2] = {0};
  for (int f = 0; f < PH_COUNT(form); f++) {
    ph_err err;
    ph_tensor *x = NULL;
    ph_tensor *vector[2] = {random_tensor("gamma", 1, D, 1, 1), random_tensor("beta", 1, D, 1, 1)};
    ph_tensor *out[2] = {0};
    ph_tensor *gin[3] = {0};
    ph_ok(ph_tensor_new(&x, PH_F64, f + 2, form[f], &err));
    ph_rng_fill_normal(ph_rng_of(7, "x"), 0, 1, x);
    const ph_tensor *arg[3] = {x, vector[0], vector[1]};
    ph_ok(ph_op_eager(op, 3, arg, sample, attr, &out[0], &err));
    ph_ok(ph_op_eager_bwd(op, 3, arg, sample, attr, x, gin, &err));
    out[1] = gin[0];
    for (int i = 0; i < 2; i++) {
      assert_true(ph_tensor_same_shape(x, out[i]));
      first[i] = f == 0 ? out[i] : first[i];
      assert_memory_equal(first[i]->data, out[i]->data, ph_tensor_bytes(out[i]));
      if (f > 0) {
        ph_tensor_free(out[i]);
      }
      ph_tensor_free(vector[i]);
    }
    ph_tensor_free(gin[1]);
    ph_tensor_free(gin[2]);
    ph_tensor_free(x);
  }
  ph_tensor_free(first[0]);
  ph_tensor_free(first[1]);
}

/* All L = 0.3 I and all L = 0: a repeated top eigenvalue and none; gradients are finite and right (case P17). */
static void test_coinciding_eigenvalues(void **state) {
  (void)state;
  const ph_op *guard = ph_op_find("guard");
  static const double level[] = {0.3, 0.0, 2.0};
  for (int k = 0; k < 3; k++) {
    op_case c = {.op = guard, .nargs = 1, .attr = {1, 1}, .arg = {op_case_tensor("L", 2, (int64_t[]){6, 6})}};
    for (int64_t i = 0; i < 36; i++) {
      ph_tensor_set(c.arg[0], i, i % 7 == 0 ? level[k] : 0);
    }
    ph_tensor *g = op_case_cotangent(&c);
    ph_tensor *gin[1] = {0};
    op_case_back(&c, guard, g, gin);
    assert_int_equal(-1, ph_tensor_first_nonfinite(gin[0]));
    if (k < 2) {
      for (int64_t i = 0; i < 36; i++) {
        ph_near(ph_tensor_get(g, i), ph_tensor_get(gin[0], i), 0, 0, "below budget the guard is the identity");
      }
    }
    ph_tensor_free(gin[0]);
    ph_tensor_free(g);
    op_case_drop(&c);
  }
}

/* Matrices whose squares overflow: the budget holds, its gradient is smaller by that size, a transport is orthogonal. */
static void test_any_size(void **state) {
  (void)state;
  for (int f32 = 0; f32 < 2; f32++) {
    const ph_op *guard = ph_op_find("guard");
    const double size = ldexp(1, f32 ? 100 : 600);
    const double eps = f32 ? 0x1p-23 : 0x1p-52;
    ph_tensor *out[2];
    ph_tensor *gin[2][1] = {{0}};
    for (int k = 0; k < 2; k++) {
      op_case c = {.op = guard, .nargs = 1, .attr = {1, 1}};
      ph_tensor *L = random_tensor("L", 2, 6, 6, k ? 4 * size : 4);
      ph_err err;
      ph_ok(ph_tensor_cast(&c.arg[0], L, f32 ? PH_F32 : PH_F64, &err));
      out[k] = op_case_run(&c, guard);
      op_case_back(&c, guard, out[0], gin[k]);
      ph_tensor_free(L);
      op_case_drop(&c);
    }
    for (int64_t i = 0; i < 36; i++) {
      double most = fabs(ph_tensor_get(gin[0][0], 0));
      ph_near(ph_tensor_get(out[0], i), ph_tensor_get(out[1], i), 0, 64 * eps, "the same matrix, to rounding");
      ph_near(ph_tensor_get(gin[0][0], i), ph_tensor_get(gin[1][0], i) * size, 64 * eps * (1 + most), 64 * eps,
              "the same projector");
    }
    for (int k = 0; k < 2; k++) {
      ph_tensor_free(out[k]);
      ph_tensor_free(gin[k][0]);
    }
  }
  op_case c = {.op = ph_op_find("cayley"), .nargs = 1, .arg = {random_tensor("S", 2, 6, 6, ldexp(1, 600))}};
  op_case_promise(c.arg[0], 'k');
  ph_tensor *C = op_case_run(&c, c.op);
  for (int64_t i = 0; i < 36; i++) {
    ph_near(i % 7 ? 0 : -1, ph_tensor_get(C, i), 1e-15, 0, "2 (I + S/2)^-1 is of size 1e-180");
  }
  ph_tensor_free(C);
  op_case_drop(&c);
}

/* Case P18: orthogonality of C over widths and strengths, with the odd widths' zero mode; f64 and f32. */
static void test_cayley_orthogonal(void **state) {
  (void)state;
  static const int64_t width[] = {1, 2, 3, 31, 32, 33, 64, 151};
  static const double strength[] = {0, 1e-3, 1, 100, 1e6};
  for (int w = 0; w < PH_COUNT(width); w++) {
    for (int k = 0; k < PH_COUNT(strength); k++) {
      for (int f32 = 0; f32 < 2; f32++) {
        int64_t d = width[w];
        ph_err err;
        ph_tensor *A = random_tensor("A", 2, d, d, strength[k] / sqrt(2.0 * (double)d));
        ph_tensor *S = NULL;
        ph_tensor *C = NULL;
        bool sample[1] = {false};
        double none[PH_OP_ATTRS] = {0};
        ph_tensor *T = NULL;
        ph_ok(ph_tensor_cast(&T, A, f32 ? PH_F32 : PH_F64, &err));
        ph_ok(ph_op_eager(ph_op_find("skew"), 1, (const ph_tensor *const *)&T, sample, none, &S, &err));
        ph_ok(ph_op_eager(ph_op_find("cayley"), 1, (const ph_tensor *const *)&S, sample, none, &C, &err));
        double worst = 0;
        for (int64_t i = 0; i < d; i++) {
          for (int64_t j = 0; j < d; j++) {
            double sum = i == j ? -1 : 0;
            for (int64_t q = 0; q < d; q++) {
              sum += ph_tensor_get(C, q * d + i) * ph_tensor_get(C, q * d + j);
            }
            worst = fabs(sum) > worst || isnan(sum) ? fabs(sum) : worst;
          }
        }
        double allowed = (f32 ? 5e-7 : 2e-14) * sqrt((double)d); /* a column is a sum of d rounded squares */
        if (!(worst <= allowed)) {
          fail_msg("d = %lld, strength %g, %s: %g > %g", (long long)d, strength[k], f32 ? "f32" : "f64", worst,
                   allowed);
        }
        ph_tensor_free(A);
        ph_tensor_free(T);
        ph_tensor_free(S);
        ph_tensor_free(C);
      }
    }
  }
}

static void test_documented(void **state) {
  (void)state;
  for (int i = 0; i < ph_op_count(); i++) {
    const ph_op *op = ph_op_at(i);
    assert_true(op->doc && strlen(op->doc) > 10);
    assert_true(op->equation && op->equation[0]);
    assert_ptr_equal(op, ph_op_find(op->name));
    assert_int_equal(ph_op_nargs(op), strspn(op->args, "mqkpvsxar"));
    assert_true(op->shape ? op->fwd && (op->bwd || ph_op_nargs(op) == 0) : op->role != PH_ROLE_NONE);
    assert_true(op->role == PH_ROLE_NONE || ph_op_of(op->role) == op);
  }
  assert_null(ph_op_find("no such op"));
}

static void test_refusals(void **state) {
  (void)state;
  ph_err err;
  ph_tensor *a = random_tensor("a", 2, 3, 4, 1);
  ph_tensor *b = random_tensor("b", 2, 3, 4, 1);
  const ph_tensor *arg[2] = {a, b};
  bool sample[2] = {false, false};
  double attr[PH_OP_ATTRS] = {1, 1};
  ph_tensor *out = NULL;
  ph_fails(PH_E_SHAPE, "matmul: a matrix (3, 4) does not fit a matrix (3, 4)",
           ph_op_eager(ph_op_find("matmul"), 2, arg, sample, attr, &out, &err), err);
  ph_fails(PH_E_SHAPE, "square matrix", ph_op_eager(ph_op_find("skew"), 1, arg, sample, attr, &out, &err), err);
  ph_fails(PH_E_ARG, "takes 1 arguments", ph_op_eager(ph_op_find("tanh"), 2, arg, sample, attr, &out, &err), err);
  attr[0] = 0;
  ph_fails(PH_E_ARG, "step must be a positive number",
           ph_op_eager(ph_op_find("guard"), 1, arg, sample, attr, &out, &err), err);
  assert_null(out);
  ph_tensor_free(a);
  ph_tensor_free(b);
}

static ph_status eager_once(const ph_tensor *const *arg) {
  ph_tensor *out = NULL;
  ph_err err;
  bool sample[1] = {false};
  double attr[PH_OP_ATTRS] = {1, 1};
  ph_status st = ph_op_eager(ph_op_find("guard"), 1, arg, sample, attr, &out, &err);
  if (!st) {
    ph_tensor_free(out);
  }
  return st;
}

static void test_short_memory(void **state) {
  (void)state;
  ph_tensor *a = random_tensor("a", 2, 3, 3, 1);
  const ph_tensor *arg[1] = {a};
  ph_each_failed_allocation(eager_once(arg));
  ph_tensor_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_adjoints),
                                     PH_TEST(test_promises),
                                     PH_TEST(test_elementwise_claims),
                                     PH_TEST(test_positions),
                                     PH_TEST(test_coinciding_eigenvalues),
                                     PH_TEST(test_any_size),
                                     PH_TEST(test_cayley_orthogonal),
                                     PH_TEST(test_documented),
                                     PH_TEST(test_refusals),
                                     PH_TEST(test_short_memory)};
  return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
