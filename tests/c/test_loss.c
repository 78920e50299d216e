/* test_loss.c - every row of the table of losses: its value against its equation, its cotangent against central differences. */
#include "slow_model.h"

enum { COLS = 3, POSITIONS = 2 };

static int32_t label[16];

/* A stage that gives COLS features at each of POSITIONS positions. tail: the lists and the loss. */
static void text_of(char *text, size_t size, const char *tail) {
  snprintf(text, size,
           "phrun-ir 2\ndtype f64\ninput %d 4\nsegment s1\nparam W %d 4 normal 0.7\nparam b 1 %d normal 0.5\n"
           "node 0 state\nnode 1 apply p0 n0\nnode 2 bias n1 p1\nresult n2\nend\n%s\n",
           POSITIONS, COLS, COLS, tail);
}

/* The plan of a tail; canonical text is made of it, which may be of version 1. */
static ph_plan *plan_of(const char *tail, char *canonical, size_t size) {
  char text[1024];
  ph_ir *ir = NULL;
  ph_err err;
  char *printed = NULL;
  text_of(text, sizeof text, tail);
  if (ph_ir_read(&ir, text, strlen(text), &err)) {
    fail_msg("%s\n%s", err.text, text);
  }
  ph_ok(ph_ir_print(ir, &printed, NULL, &err));
  snprintf(canonical, size, "%s", printed);
  ph_mem_free(printed);
  ph_ir_free(ir);
  return sm_plan(canonical, &(ph_plan_options){.batch = 4});
}

static void set_of(sm_set *s) {
  sm_set_make(s, 16, POSITIONS * 4, POSITIONS * COLS, PH_F64);
  for (int i = 0; i < 16; i++) {
    label[i] = (i * 7) % COLS;
  }
  s->data.label = label;
}

/* The equations of the rows, for one row of outputs y and its label or target t. */
typedef double equation(const double *y, int32_t want, const double *t);

static double log_share(const double *y, int j) {
  double sum = 0;
  for (int k = 0; k < COLS; k++) {
    sum += exp(y[k] - y[j]);
  }
  return log(sum);
}

static double hard(const double *y, int32_t want, const double *t) {
  (void)t;
  return log_share(y, want);
}

static double soft(const double *y, int32_t want, const double *t) {
  (void)t;
  const double w[COLS] = {1, 0.5, 2};
  double sum = 0;
  for (int j = 0; j < COLS; j++) {
    sum += w[j] * ((j == want) * 0.7 + 0.3 / COLS) * log_share(y, j);
  }
  return sum;
}

static double mean_of(double (*f)(double), const double *y, const double *t) {
  double sum = 0;
  for (int j = 0; j < COLS; j++) {
    sum += f(y[j] - t[j]) / COLS;
  }
  return sum;
}

static double square(double e) { return e * e; }
static double huber_half(double e) { return fabs(e) <= 0.5 ? e * e / 2 : 0.5 * (fabs(e) - 0.25); }
static double huber_one(double e) { return fabs(e) <= 1 ? e * e / 2 : fabs(e) - 0.5; }

static double mse(const double *y, int32_t want, const double *t) {
  (void)want;
  return mean_of(square, y, t);
}

static double huber(const double *y, int32_t want, const double *t) {
  (void)want;
  return mean_of(huber_one, y, t);
}

static double narrow(const double *y, int32_t want, const double *t) {
  (void)want;
  return mean_of(huber_half, y, t);
}

static double mae(const double *y, int32_t want, const double *t) {
  (void)want;
  return mean_of(fabs, y, t);
}

typedef struct example {
  const char *tail;
  equation *f;
} example;

static const example EXAMPLES[] = {
    {"loss softmax_cross_entropy", hard},
    {"table w 1 0.5 2\nloss softmax_cross_entropy smoothing=0.3 weights=@w", soft},
    {"loss mse", mse},
    {"loss huber", huber},
    {"loss huber delta=0.5", narrow},
    {"loss mae", mae},
};

static void check_value(ph_plan *p, const sm_set *s, equation *f, const char *text) {
  ph_err err;
  ph_result res;
  ph_tensor *out = sm_blank(SM_SAMPLES, POSITIONS * COLS);
  ph_ok(ph_plan_eval(p, &s->data, s->idx, SM_SAMPLES, out, &res, &err));
  double want = 0;
  for (int i = 0; i < SM_SAMPLES * POSITIONS; i++) {
    int32_t row = s->idx[i / POSITIONS];
    const double *y = (const double *)out->data + (size_t)i * COLS;
    const double *t = (const double *)s->t->data + (row * POSITIONS + i % POSITIONS) * COLS;
    want += f(y, label[row], t) / (SM_SAMPLES * POSITIONS);
  }
  if (!(fabs(want - res.loss) <= 1e-13 * (1 + fabs(want)))) { /* a few dozen terms */
    fail_msg("want %.15g, got %.15g\n%s", want, res.loss, text);
  }
  ph_tensor_free(out);
}

static void test_every_row(void **state) {
  (void)state;
  int seen[16] = {0};
  for (int i = 0; i < PH_COUNT(EXAMPLES); i++) {
    char text[1024];
    sm_set s;
    set_of(&s);
    ph_plan *p = plan_of(EXAMPLES[i].tail, text, sizeof text);
    ph_plan_init(p, 3);
    check_value(p, &s, EXAMPLES[i].f, text);
    sm_check_gradient(p, text, &s);
    ph_plan_free(p);
    sm_set_drop(&s);
    for (int k = 0; k < ph_loss_count(); k++) {
      seen[k] |= strstr(EXAMPLES[i].tail, ph_loss_at(k)->name) != NULL;
    }
  }
  for (int k = 1; k < ph_loss_count(); k++) { /* all but `none` */
    assert_true(seen[k]);
  }
}

static void test_rows_are_whole(void **state) {
  (void)state;
  for (int k = 0; k < ph_loss_count(); k++) {
    const ph_loss *l = ph_loss_at(k);
    assert_true(ph_loss_find(l->name) == l);
    assert_true(l->equation && l->doc && (l->since == 1 || l->since == 2));
    assert_true((l->run != NULL) == (l->need != PH_LOSS_NOTHING));
    for (int a = 0; a < PH_LOSS_ATTRS && l->attr[a].name; a++) {
      assert_true(l->attr[a].doc && ph_loss_allows(&l->attr[a], l->attr[a].initial));
      assert_false(ph_loss_allows(&l->attr[a], NAN) || ph_loss_allows(&l->attr[a], -1));
    }
  }
  assert_null(ph_loss_find("hinge"));
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_every_row), PH_TEST(test_rows_are_whole)};
  return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
