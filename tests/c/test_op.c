/* test_op.c - every row of the op table: adjoint against central differences in float64, shape rules, documentation. */
#include "base/rng.h"
#include "base/tensor.h"
#include "ir/op.h"
#include "ph_test.h"

/* The arguments an op is tried on: its kind for width d and n samples. */
typedef struct setup {
  ph_tensor *arg[PH_OP_ARGS];
  bool sample[PH_OP_ARGS];
  double attr[PH_OP_ATTRS];
} setup;

static ph_tensor *random_tensor(const char *name, int rank, int64_t a, int64_t b, double scale) {
  ph_tensor *t = NULL;
  ph_err err;
  ph_ok(ph_tensor_new(&t, PH_F64, rank, (int64_t[]){a, b}, &err));
  ph_rng_fill_normal(ph_rng_of(7, name), 0, scale, t);
  return t;
}

static bool is(const ph_op *op, const char *name) { return strcmp(op->name, name) == 0; }

static void make(setup *s, const ph_op *op, int64_t d, int64_t n) {
  memset(s, 0, sizeof *s);
  s->attr[0] = is(op, "layernorm") ? 1e-5 : 0.7;
  s->attr[1] = 0.8; /* guard: its budget, so that at d > 2 it is active */
  bool rows = is(op, "apply") || is(op, "bias") || is(op, "layernorm");
  for (int i = 0; i < op->nargs; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", op->name, i);
    s->sample[i] = rows && (is(op, "apply") ? i == 1 : i == 0);
    bool vector = rows && !s->sample[i] && !is(op, "apply");
    int64_t r = s->sample[i] ? n : vector ? 1 : is(op, "apply") ? d + 1 : d;
    s->arg[i] = vector ? random_tensor(name, 1, d, 1, 1) : random_tensor(name, 2, r, d, 1);
  }
  if (is(op, "cayley") || is(op, "damping")) { /* what they are meant for: skew and psd */
    for (int64_t i = 0; i < d; i++) {
      for (int64_t j = 0; j <= i; j++) {
        double v = ph_tensor_get(s->arg[0], i * d + j);
        ph_tensor_set(s->arg[0], j * d + i, is(op, "cayley") ? -v : v);
        ph_tensor_set(s->arg[0], i * d + j, is(op, "cayley") && i == j ? 0 : v + (i == j ? 3.0 * (double)d : 0));
      }
    }
  }
}

static void drop(setup *s) {
  for (int i = 0; i < PH_OP_ARGS; i++) {
    ph_tensor_free(s->arg[i]);
  }
}

static double value(const ph_op *op, const setup *s, const ph_tensor *g) {
  ph_tensor *out = NULL;
  ph_err err;
  if (ph_op_eager(op, op->nargs, (const ph_tensor *const *)s->arg, s->sample, s->attr, &out, &err)) {
    fail_msg("%s: %s", op->name, err.text);
  }
  double sum = 0;
  for (int64_t i = 0; i < ph_tensor_count(out); i++) {
    sum += ph_tensor_get(out, i) * ph_tensor_get(g, i);
  }
  ph_tensor_free(out);
  return sum;
}

static ph_tensor *cotangent(const ph_op *op, const setup *s) {
  ph_tensor *out = NULL;
  ph_err err;
  if (ph_op_eager(op, op->nargs, (const ph_tensor *const *)s->arg, s->sample, s->attr, &out, &err)) {
    fail_msg("%s: %s", op->name, err.text);
  }
  ph_rng_fill_normal(ph_rng_of(8, op->name), 0, 1, out);
  return out;
}

/* Directional derivative along a random direction of every argument. */
static void check_adjoint(const ph_op *op, int64_t d, int64_t n) {
  setup s;
  ph_err err;
  make(&s, op, d, n);
  ph_tensor *g = cotangent(op, &s);
  ph_tensor *gin[PH_OP_ARGS] = {0};
  ph_ok(ph_op_eager_bwd(op, op->nargs, (const ph_tensor *const *)s.arg, s.sample, s.attr, g, gin, &err));
  for (int a = 0; a < op->nargs; a++) {
    ph_tensor *dir = random_tensor("direction", s.arg[a]->rank, s.arg[a]->dim[0], s.arg[a]->dim[1], 1);
    double want = 0;
    for (int64_t i = 0; i < ph_tensor_count(dir); i++) {
      want += ph_tensor_get(gin[a], i) * ph_tensor_get(dir, i);
    }
    double side[2];
    double h = 1e-5;
    for (int k = 0; k < 2; k++) {
      for (int64_t i = 0; i < ph_tensor_count(dir); i++) {
        ph_tensor_set(s.arg[a], i, ph_tensor_get(s.arg[a], i) + (k ? -2 * h : h) * ph_tensor_get(dir, i));
      }
      side[k] = value(op, &s, g);
    }
    for (int64_t i = 0; i < ph_tensor_count(dir); i++) {
      ph_tensor_set(s.arg[a], i, ph_tensor_get(s.arg[a], i) + h * ph_tensor_get(dir, i));
    }
    double got = (side[0] - side[1]) / (2 * h);
    if (fabs(got - want) >
        1e-6 * (fabs(want) + (double)d)) { /* h^2 truncation and eps/h rounding of a sum of d terms */
      fail_msg("%s: argument %d, d = %lld: derivative %.10g, adjoint %.10g", op->name, a + 1, (long long)d, got, want);
    }
    ph_tensor_free(dir);
    ph_tensor_free(gin[a]);
  }
  ph_tensor_free(g);
  drop(&s);
}

static void test_adjoints(void **state) {
  (void)state;
  static const int64_t width[] = {1, 2, 3, 7, 15, 16, 17, 33};
  for (int i = 0; i < ph_op_count(); i++) {
    const ph_op *op = ph_op_at(i);
    for (int k = 0; op->bwd && k < PH_COUNT(width); k++) {
      check_adjoint(op, width[k], 5);
    }
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
    setup s;
    ph_err err;
    make(&s, guard, 6, 1);
    s.attr[0] = 1;
    s.attr[1] = 1;
    for (int64_t i = 0; i < 36; i++) {
      ph_tensor_set(s.arg[0], i, i % 7 == 0 ? level[k] : 0);
    }
    ph_tensor *g = cotangent(guard, &s);
    ph_tensor *gin[1] = {0};
    ph_ok(ph_op_eager_bwd(guard, 1, (const ph_tensor *const *)s.arg, s.sample, s.attr, g, gin, &err));
    assert_int_equal(-1, ph_tensor_first_nonfinite(gin[0]));
    if (k < 2) {
      for (int64_t i = 0; i < 36; i++) {
        ph_near(ph_tensor_get(g, i), ph_tensor_get(gin[0], i), 0, 0, "below budget the guard is the identity");
      }
    }
    ph_tensor_free(gin[0]);
    ph_tensor_free(g);
    drop(&s);
  }
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
    assert_true(op->nargs == 0 || (op->fwd && op->bwd && op->flops));
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
  const struct CMUnitTest tests[] = {
      PH_TEST(test_adjoints),          PH_TEST(test_positions),  PH_TEST(test_coinciding_eigenvalues),
      PH_TEST(test_cayley_orthogonal), PH_TEST(test_documented), PH_TEST(test_refusals),
      PH_TEST(test_short_memory)};
  return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
