/* slow_model.h - plans against node-by-node evaluation, and their gradients against central differences. */
#ifndef SLOW_MODEL_H
#define SLOW_MODEL_H

#include "base/rng.h"
#include "base/tensor.h"
#include "engine/run/plan.h"
#include "ir/ir.h"
#include "ph_test.h"

enum { SM_SAMPLES = 7, SM_NODES = 128 };

static inline ph_plan *sm_plan(const char *text, const ph_plan_options *o) {
  ph_plan *p = NULL;
  ph_err err;
  if (ph_plan_new(&p, text, strlen(text), o, &err)) {
    fail_msg("%s\n%s", err.text, text);
  }
  return p;
}

static inline ph_ir *sm_ir(const char *text) {
  ph_ir *ir = NULL;
  ph_err err;
  if (ph_ir_parse(&ir, text, strlen(text), &err)) {
    fail_msg("%s\n%s", err.text, text);
  }
  return ir;
}

/* ---- data of a model ---- */

typedef struct sm_set {
  ph_tensor *x, *t;
  ph_data data;
  int32_t idx[64];
} sm_set;

static inline void sm_set_make(sm_set *s, int64_t n, int64_t in, int64_t out, ph_dtype dtype) {
  ph_err err;
  ph_ok(ph_tensor_new(&s->x, dtype, 2, (int64_t[]){n, in}, &err));
  ph_ok(ph_tensor_new(&s->t, dtype, 2, (int64_t[]){n, out}, &err));
  ph_rng_fill_normal(ph_rng_of(3, "x"), 0, 1, s->x);
  ph_rng_fill_normal(ph_rng_of(3, "t"), 0, 1, s->t);
  s->data = (ph_data){.x = ph_source_rows(s->x), .target = ph_source_rows(s->t)};
  for (int i = 0; i < 64; i++) {
    s->idx[i] = (int32_t)((i * 5) % n);
  }
}

static inline int64_t sm_features(ph_shape s) { return s.pos * s.cols; }

/* Sixteen samples for a model. */
static inline void sm_set_of(sm_set *s, const ph_ir *ir) {
  sm_set_make(s, 16, sm_features(ir->input), sm_features(ir->output), ir->dtype);
}

static inline void sm_set_drop(sm_set *s) {
  ph_tensor_free(s->x);
  ph_tensor_free(s->t);
}

/* ---- tensors ---- */

static inline ph_tensor *sm_copy(const ph_tensor *t) {
  ph_tensor *c = NULL;
  ph_err err;
  ph_ok(ph_tensor_copy(&c, t, &err));
  return c;
}

static inline ph_tensor *sm_blank(int64_t n, int64_t w) {
  ph_tensor *t = NULL;
  ph_err err;
  ph_ok(ph_tensor_new(&t, PH_F64, 2, (int64_t[]){n, w}, &err));
  return t;
}

/* Columns first.. of x (n, w) as values of a shape: (n, positions, features) or (n, height, width, features). */
static inline ph_tensor *sm_part(const ph_tensor *x, int64_t first, ph_shape s) {
  ph_tensor *t = NULL;
  ph_err err;
  int64_t two[] = {x->dim[0], s.pos / s.wide, s.wide, s.cols};
  int64_t one[] = {x->dim[0], s.pos, s.cols};
  ph_ok(ph_tensor_new(&t, PH_F64, s.wide > 1 ? 4 : 3, s.wide > 1 ? two : one, &err));
  int64_t w = sm_features(s);
  for (int64_t i = 0; i < x->dim[0] * w; i++) {
    ph_tensor_set(t, i, ph_tensor_get(x, i / w * x->dim[1] + first + i % w));
  }
  return t;
}

/* The numbers of t, `w` a sample, into columns first.. of x. */
static inline void sm_paste(ph_tensor *x, const ph_tensor *t, int64_t first, int64_t w) {
  for (int64_t i = 0; i < x->dim[0] * w; i++) {
    ph_tensor_set(x, i / w * x->dim[1] + first + i % w, ph_tensor_get(t, i));
  }
}

static inline void sm_near(const ph_tensor *want, const ph_tensor *got, double rtol, const char *text) {
  double top = 1;
  for (int64_t i = 0; i < ph_tensor_count(want); i++) {
    top = fmax(top, fabs(ph_tensor_get(want, i)));
  }
  for (int64_t i = 0; i < ph_tensor_count(want); i++) {
    double error = fabs(ph_tensor_get(want, i) - ph_tensor_get(got, i));
    if (!(error <= rtol * top)) {
      fail_msg("element %lld: want %.15g, got %.15g\n%s", (long long)i, ph_tensor_get(want, i), ph_tensor_get(got, i),
               text);
    }
  }
}

/* ---- slow evaluation ---- */

static inline int sm_param(const ph_plan *p, const char *name) {
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    if (strcmp(ph_plan_param_name(p, i), name) == 0) {
      return i;
    }
  }
  fail_msg("no parameter %s", name);
  return -1;
}

static inline ph_tensor *sm_param_of(const ph_plan *p, const ph_ir_segment *s, int index, int64_t layer) {
  char name[2 * PH_IR_NAME];
  ph_err err;
  ph_tensor *all = NULL;
  ph_tensor *one = NULL;
  snprintf(name, sizeof name, "%s.%s", s->name, s->param[index].name);
  ph_ok(ph_plan_get(p, sm_param(p, name), PH_MOMENT_VALUE, &all, &err));
  ph_ok(ph_tensor_new(&one, all->dtype, 2, &all->dim[1], &err));
  memcpy(one->data, (char *)all->data + (size_t)layer * ph_tensor_bytes(one), ph_tensor_bytes(one));
  ph_tensor_free(all);
  return one;
}

/* Values of the nodes of one iteration. */
typedef struct sm_step {
  const ph_plan *p;
  const ph_ir_segment *s;
  int64_t t;
  const ph_tensor *state, *input;
  ph_tensor *value[SM_NODES];
  double *terms;      /* what terms add to the loss of all samples; or NULL */
  ph_tensor *observe; /* (n, repeat, observations) of the segment, or NULL */
} sm_step;

static inline ph_tensor *sm_node(const sm_step *k, int i) {
  const ph_ir_node *n = &k->s->node[i];
  if (!n->op->shape) {
    return sm_copy(n->op->role == PH_ROLE_STATE ? k->state : k->input);
  }
  ph_tensor *arg[PH_IR_ARGS] = {0};
  bool sample[PH_IR_ARGS] = {0};
  double attr[PH_OP_ATTRS];
  for (int a = 0; a < n->nargs; a++) {
    bool param = n->arg[a].is_param;
    int of = n->arg[a].index;
    arg[a] = param ? sm_param_of(k->p, k->s, of, k->s->tied ? 0 : k->t) : sm_copy(k->value[of]);
    sample[a] = !param && !ph_shape_is_param(k->s->node[of].shape);
  }
  memcpy(attr, n->attr, sizeof attr);
  ph_ir_attrs(k->s, attr, n->table, k->t);
  ph_tensor *out = NULL;
  ph_err err;
  if (ph_op_eager(n->op, n->nargs, (const ph_tensor *const *)arg, sample, attr, &out, &err)) {
    fail_msg("%s: %s", n->op->name, err.text);
  }
  for (int a = 0; a < n->nargs; a++) {
    ph_tensor_free(arg[a]);
  }
  return out;
}

static inline void sm_numbers(const sm_step *k) {
  const ph_ir_segment *s = k->s;
  int64_t n = k->state->dim[0];
  for (int64_t r = 0; r < n; r++) {
    for (int i = 0; i < s->nterms; i++) {
      *k->terms += s->term[i].weight * ph_tensor_get(k->value[s->term[i].node], r);
    }
    for (int i = 0; k->observe && i < s->nobserves; i++) {
      ph_tensor_set(k->observe, (r * s->repeat + k->t) * s->nobserves + i,
                    ph_tensor_get(k->value[s->observe[i].node], r));
    }
  }
}

/* x (n, features) through one segment. */
static inline ph_tensor *sm_segment(const ph_plan *p, const ph_ir_segment *s, ph_tensor *x, double *terms,
                                    ph_tensor *observe) {
  assert_true(s->nnodes <= SM_NODES);
  ph_tensor *all = sm_blank(x->dim[0], sm_features(s->out));
  ph_tensor *state = s->from_zero ? NULL : sm_part(x, 0, s->state);
  if (s->from_zero) {
    ph_tensor *zeros = sm_blank(x->dim[0], sm_features(s->state));
    state = sm_part(zeros, 0, s->state);
    ph_tensor_free(zeros);
  }
  int64_t place = sm_features(s->input);
  int64_t given = s->read >= 0 ? sm_features(s->node[s->read].shape) : sm_features(s->out);
  for (int64_t t = 0; t < s->repeat; t++) {
    ph_tensor *input = s->driven ? sm_part(x, (t + !s->from_zero) * place, s->input) : NULL;
    sm_step k = {.p = p, .s = s, .t = t, .state = state, .input = input, .terms = terms, .observe = observe};
    for (int i = 0; i < s->nnodes; i++) {
      k.value[i] = sm_node(&k, i);
    }
    sm_numbers(&k);
    sm_paste(all, k.value[s->read >= 0 ? s->read : s->result], s->read >= 0 ? t * given : 0, given);
    ph_tensor_free(state);
    ph_tensor_free(input);
    state = sm_copy(k.value[s->result]);
    for (int i = 0; i < s->nnodes; i++) {
      ph_tensor_free(k.value[i]);
    }
  }
  ph_tensor_free(state);
  ph_tensor_free(x);
  return all;
}

/* What segment g observes, by the plan; NULL when it observes nothing. */
static inline ph_tensor *sm_observed(ph_plan *p, const ph_ir_segment *s, int g, const sm_set *set) {
  ph_tensor *t = NULL;
  ph_err err;
  ph_result res;
  if (s->nobserves == 0) {
    return NULL;
  }
  ph_ok(ph_tensor_new(&t, PH_F64, 3, (int64_t[]){SM_SAMPLES, s->repeat, s->nobserves}, &err));
  ph_probe probe = {.segment = g, .observe = t};
  ph_ok(ph_plan_probe(p, &set->data, set->idx, SM_SAMPLES, &probe, &res, &err));
  return t;
}

/* The sum of squared errors over the samples; 0 without a loss, NaN for another loss. */
static inline double sm_mse(const ph_ir *ir, const ph_tensor *out, const sm_set *s) {
  bool mse = strcmp(ir->loss->name, "mse") == 0;
  double sum = mse || !ir->loss->run ? 0 : NAN;
  int64_t w = out->dim[1];
  for (int64_t i = 0; mse && i < ph_tensor_count(out); i++) {
    double d = ph_tensor_get(out, i) - ph_tensor_get(s->t, s->idx[i / w] * w + i % w);
    sum += d * d / (double)w;
  }
  return sum;
}

static inline void sm_check_forward(ph_plan *p, const char *text, const sm_set *s) {
  ph_ir *ir = sm_ir(text);
  ph_err err;
  ph_tensor *out = sm_blank(SM_SAMPLES, sm_features(ir->output));
  ph_result res;
  double terms = 0;
  ph_ok(ph_plan_eval(p, &s->data, s->idx, SM_SAMPLES, out, &res, &err));
  ph_tensor *x = sm_blank(SM_SAMPLES, s->x->dim[1]);
  for (int64_t r = 0; r < SM_SAMPLES; r++) {
    memcpy((double *)x->data + r * x->dim[1], (double *)s->x->data + s->idx[r] * x->dim[1],
           (size_t)x->dim[1] * sizeof(double));
  }
  for (int g = 0; g < ir->nsegments; g++) {
    ph_tensor *got = sm_observed(p, &ir->segment[g], g, s);
    ph_tensor *want = got ? sm_copy(got) : NULL;
    x = sm_segment(p, &ir->segment[g], x, &terms, want);
    if (got) {
      sm_near(want, got, 1e-11, text);
    }
    ph_tensor_free(want);
    ph_tensor_free(got);
  }
  sm_near(x, out, 1e-11, text); /* merged products and another order of sums, a few dozen terms deep */
  double loss = (sm_mse(ir, x, s) + terms) / SM_SAMPLES;
  if (fabs(loss - res.loss) > 1e-11 * (1 + fabs(loss))) {
    fail_msg("the loss is %.15g, want %.15g\n%s", res.loss, loss, text);
  }
  ph_tensor_free(x);
  ph_tensor_free(out);
  ph_ir_free(ir);
}

/* ---- gradient ---- */

static inline double sm_loss(ph_plan *p, const sm_set *s) {
  ph_result res;
  ph_err err;
  ph_ok(ph_plan_eval(p, &s->data, s->idx, SM_SAMPLES, NULL, &res, &err));
  return res.loss;
}

/* Every parameter moves along a random direction of its own. */
static inline void sm_shift(ph_plan *p, double h) {
  ph_err err;
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    ph_tensor *t = NULL;
    ph_ok(ph_plan_get(p, i, PH_MOMENT_VALUE, &t, &err));
    ph_tensor *d = sm_copy(t);
    ph_rng_fill_normal(ph_rng_of(11, ph_plan_param_name(p, i)), 0, 1, d);
    for (int64_t k = 0; k < ph_tensor_count(t); k++) {
      ph_tensor_set(t, k, ph_tensor_get(t, k) + h * ph_tensor_get(d, k));
    }
    ph_ok(ph_plan_set(p, i, PH_MOMENT_VALUE, t, &err));
    ph_tensor_free(t);
    ph_tensor_free(d);
  }
  ph_plan_refresh(p);
}

/* The rows of the batch move along a random direction; <direction, gx> is returned when gx is given. */
static inline double sm_shift_data(const sm_set *s, double h, const ph_tensor *gx) {
  int64_t w = s->x->dim[1];
  ph_rng rng = ph_rng_of(12, "data");
  double along = 0;
  for (int64_t r = 0; r < SM_SAMPLES; r++) {
    for (int64_t c = 0; c < w; c++) {
      double d = ph_rng_normal(rng, (uint64_t)(r * w + c));
      int64_t at = s->idx[r] * w + c;
      ph_tensor_set(s->x, at, ph_tensor_get(s->x, at) + h * d);
      along += gx ? d * ph_tensor_get(gx, r * w + c) : 0;
    }
  }
  return along;
}

/* <directions of sm_shift, gradients>, after ph_plan_grad. */
static inline double sm_slope(const ph_plan *p) {
  ph_err err;
  double sum = 0;
  for (int i = 0; i < ph_plan_param_count(p); i++) {
    ph_tensor *g = NULL;
    ph_ok(ph_plan_get(p, i, PH_MOMENT_GRAD, &g, &err));
    ph_tensor *d = sm_copy(g);
    ph_rng_fill_normal(ph_rng_of(11, ph_plan_param_name(p, i)), 0, 1, d);
    for (int64_t k = 0; k < ph_tensor_count(g); k++) {
      sum += ph_tensor_get(g, k) * ph_tensor_get(d, k);
    }
    ph_tensor_free(g);
    ph_tensor_free(d);
  }
  return sum;
}

/* The central difference of the loss along the directions of sm_shift and sm_shift_data. */
static inline double sm_difference(ph_plan *p, const sm_set *s, double h) {
  sm_shift_data(s, h, NULL);
  sm_shift(p, h);
  double up = sm_loss(p, s);
  sm_shift_data(s, -2 * h, NULL);
  sm_shift(p, -2 * h);
  double down = sm_loss(p, s);
  sm_shift_data(s, h, NULL);
  sm_shift(p, h);
  return (up - down) / (2 * h);
}

/* Of three steps one must do: a larger one may cross a kink or a jump, of a smaller one rounding takes more. */
static inline void sm_check_gradient(ph_plan *p, const char *text, const sm_set *s) {
  ph_result res;
  ph_err err;
  ph_tensor *gx = sm_blank(SM_SAMPLES, s->x->dim[1]);
  ph_ok(ph_plan_grad(p, &s->data, s->idx, SM_SAMPLES, gx, &res, &err));
  double want = sm_slope(p) + sm_shift_data(s, 0, gx);
  double got = NAN;
  double room = 2e-5 * (fabs(want) + fabs(res.loss) + 1); /* h^2 f''' and eps f / h */
  for (double h = 1e-6; h > 5e-9 && !(fabs(got - want) <= room); h /= 10) {
    got = sm_difference(p, s, h);
  }
  if (!(fabs(got - want) <= room)) {
    fail_msg("derivative %.10g, adjoint %.10g\n%s", got, want, text);
  }
  ph_tensor_free(gx);
}

#endif
