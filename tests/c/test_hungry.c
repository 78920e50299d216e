/* test_hungry.c - what an op takes besides its operands is there, in both phases. Every op of random models asks for more scratch
 * than its own and for something to keep, fills both to the last element, and finds what it kept; the numbers stay the same. The
 * address sanitizer sees an overrun. (Ops on samples once got a scratch that was sized by the parameter phase alone.) */
#include "engine/run/plan_internal.h"
#include "random_model.h"
#include "slow_model.h"

enum { MORE = 3, OPS = 256 };

static ph_op hungry[OPS];
static int lost; /* elements that were kept and not found again */

/* The same call as its row makes it. */
static ph_call own(const ph_call *c) {
  ph_call call = *c;
  call.op = ph_op_at((int)(c->op - hungry));
  return call;
}

static int64_t more_scratch(const ph_call *c) {
  ph_call call = own(c);
  return ph_op_needs(&call).scratch + MORE + c->out_shape.rows * c->out_shape.cols;
}

static int64_t more_aux(const ph_call *c) {
  ph_call call = own(c);
  return ph_op_needs(&call).aux + MORE;
}

static void fill_scratch(const ph_call *c) {
  for (int64_t i = 0; i < more_scratch(c); i++) {
    ((double *)c->scratch)[i] = NAN;
  }
}

/* What is kept beyond what the op itself keeps: numbers of its own for each matrix. */
static void each_kept(const ph_call *c, bool write) {
  int64_t used = c->out_shape.rows * (more_aux(c) - MORE);
  for (int64_t m = 0; m < c->count; m++) {
    double *at = (double *)c->aux.p + m * c->aux.step;
    for (int64_t i = used; i < used + MORE * c->out_shape.rows; i++) {
      lost += !write && at[i] != (double)(i + m);
      at[i] = write ? (double)(i + m) : at[i];
    }
  }
}

static void hungry_fwd(const ph_call *c) {
  ph_call call = own(c);
  fill_scratch(c);
  each_kept(c, true);
  call.op->fwd(&call);
}

static void hungry_bwd(const ph_call *c) {
  ph_call call = own(c);
  fill_scratch(c);
  each_kept(c, false);
  call.op->bwd(&call);
}

static void make_hungry(ph_ir *ir) {
  assert_true(ph_op_count() <= OPS);
  for (int i = 0; i < ph_op_count(); i++) {
    const ph_op *op = ph_op_at(i);
    hungry[i] = *op;
    hungry[i].scratch = more_scratch;
    hungry[i].aux = more_aux;
    hungry[i].fwd = hungry_fwd;
    hungry[i].bwd = op->bwd ? hungry_bwd : NULL;
  }
  for (int s = 0; s < ir->nsegments; s++) {
    for (int i = 0; i < ir->segment[s].nnodes; i++) {
      ph_ir_node *n = &ir->segment[s].node[i];
      n->op = n->op->shape ? &hungry[ph_op_number(n->op)] : n->op;
    }
  }
}

static void check_equal(const ph_plan *p, const ph_plan *q, const char *text) {
  ph_err err;
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    ph_tensor *a = NULL;
    ph_tensor *b = NULL;
    ph_ok(ph_plan_get(p, i, PH_MOMENT_GRAD, &a, &err));
    ph_ok(ph_plan_get(q, i, PH_MOMENT_GRAD, &b, &err));
    if (memcmp(a->data, b->data, ph_tensor_bytes(a)) != 0) {
      fail_msg("the gradient of %s is another one\n%s", ph_plan_param_name(p, i), text);
    }
    ph_tensor_free(a);
    ph_tensor_free(b);
  }
}

static void check_hungry(const char *text, const ph_plan_options *o) {
  ph_ir *ir = sm_ir(text);
  ph_plan *p = sm_plan(text, o);
  ph_plan *q = NULL;
  ph_err err;
  ph_result res[2];
  sm_set s;
  sm_set_of(&s, ir);
  make_hungry(ir);
  ph_ok(ph_plan_of(&q, ir, o, &err));
  ph_ok(ph_plan_grad(p, &s.data, s.idx, SM_SAMPLES, NULL, &res[0], &err));
  ph_ok(ph_plan_grad(q, &s.data, s.idx, SM_SAMPLES, NULL, &res[1], &err));
  assert_true(res[0].loss == res[1].loss);
  assert_int_equal(0, lost);
  check_equal(p, q, text);
  ph_plan_free(p);
  ph_plan_free(q);
  sm_set_drop(&s);
}

static void test_hungry(void **state) {
  (void)state;
  for (int i = 0; i < RM_STREAMS; i++) {
    rm_stream k = rm_stream_at(i);
    for (uint64_t seed = 0; seed < 20; seed++) {
      rm m;
      rm_model(&m, seed, &k);
      check_hungry(m.text, &(ph_plan_options){.batch = 4});
      check_hungry(m.text, &(ph_plan_options){.batch = 8, .tape_bytes = 1});
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_hungry)};
  return cmocka_run_group_tests_name("hungry", tests, NULL, NULL);
}
