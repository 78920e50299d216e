/* op_case.h - arguments for any op, made from its row: kinds, attributes, and the first sizes near d that its shape rule takes. */
#ifndef OP_CASE_H
#define OP_CASE_H

#include "base/rng.h"
#include "base/tensor.h"
#include "ir/op.h"
#include "ph_test.h"

typedef struct op_case {
  const ph_op *op;
  int nargs;
  ph_tensor *arg[PH_OP_ARGS];
  bool sample[PH_OP_ARGS];
  double attr[PH_OP_ATTRS];
} op_case;

/* How samples lie: one position, four on an axis, four lines of two. */
enum { OP_FORMS = 3, OP_SAMPLES = 5 };

static inline ph_shape op_case_sample(int form, int64_t cols) {
  static const int64_t pos[OP_FORMS] = {1, 4, 8};
  return ph_shape_sample(pos[form], form == 2 ? 2 : 1, cols);
}

static inline ph_tensor *op_case_tensor(const char *name, int rank, const int64_t *dim) {
  ph_tensor *t = NULL;
  ph_err err;
  ph_ok(ph_tensor_new(&t, PH_F64, rank, dim, &err));
  ph_rng_fill_normal(ph_rng_of(7, name), 0, 1, t);
  return t;
}

/* What the op is meant for: skew, symmetric and positive definite (its eigenvalues are near 3 d), regular (near 3 sqrt d), entries
 * above 0. */
static inline void op_case_promise(ph_tensor *t, char kind) {
  int64_t d = t->dim[0];
  for (int64_t i = 0; kind == 'a' && i < ph_tensor_count(t); i++) {
    ph_tensor_set(t, i, 0.2 + fabs(ph_tensor_get(t, i)));
  }
  for (int64_t i = 0; kind == 'r' && i < d; i++) {
    ph_tensor_set(t, i * d + i, ph_tensor_get(t, i * d + i) + 3 * sqrt((double)d));
  }
  for (int64_t i = 0; (kind == 'k' || kind == 'p') && i < d; i++) {
    for (int64_t j = 0; j <= i; j++) {
      double v = ph_tensor_get(t, i * d + j);
      ph_tensor_set(t, j * d + i, kind == 'k' ? -v : v);
      ph_tensor_set(t, i * d + j, i != j ? v : kind == 'k' ? 0 : v + 3.0 * (double)d);
    }
  }
}

static inline double op_case_attr(ph_attr_kind kind, int nth, int attempt) {
  static const double real[] = {0.7, 0.8, -0.6, 0.3, 1.2, -1.1};
  static const double count[] = {2, 3, 1};
  static const double index[] = {1, 0};
  switch (kind) {
  case PH_ATTR_COUNT: return count[attempt % 3];
  case PH_ATTR_INDEX: return index[attempt % 2];
  case PH_ATTR_POSITIVE: return fabs(real[nth]);
  default: return real[nth];
  }
}

/* Bits 2 i and 2 i + 1 of mask: whether rows and columns of argument i are d + 1 instead of d. */
static inline void op_case_shapes(const op_case *c, int64_t d, int form, unsigned mask, ph_shape *shape) {
  for (int i = 0; i < c->nargs; i++) {
    int64_t rows = d + (mask >> (2 * i) & 1);
    int64_t cols = d + (mask >> (2 * i + 1) & 1);
    shape[i] = c->sample[i]            ? op_case_sample(form, cols)
               : c->op->args[i] == 'v' ? ph_shape_param(1, cols)
                                       : ph_shape_param(rows, cols);
  }
}

/* The first sizes, from all matrices tall downwards, and attributes that fit. */
static inline bool op_case_fit(op_case *c, int64_t d, int form, ph_shape *shape) {
  for (unsigned k = 0; k < 1U << (2 * PH_OP_ARGS); k++) {
    for (int attempt = 0; attempt < 6; attempt++) {
      ph_shape out;
      ph_err err;
      for (int a = 0; a < PH_OP_ATTRS && c->op->attr[a].name; a++) {
        c->attr[a] = op_case_attr(c->op->attr[a].kind, a, attempt);
      }
      op_case_shapes(c, d, form, k ^ 0x55U, shape);
      if (ph_op_shape(c->op, shape, c->attr, &out, &err) == PH_OK) {
        return true;
      }
    }
  }
  return false;
}

static inline void op_case_fill(op_case *c, int form, const ph_shape *shape) {
  for (int i = 0; i < c->nargs; i++) {
    char name[48];
    ph_shape s = shape[i];
    snprintf(name, sizeof name, "%s%d", c->op->name, i);
    int64_t lines = s.pos ? s.pos / s.wide : 0;
    const int64_t matrix[] = {s.rows, s.cols};
    const int64_t forms[OP_FORMS][PH_RANK_MAX] = {
        {OP_SAMPLES, s.cols}, {OP_SAMPLES, s.pos, s.cols}, {OP_SAMPLES, lines, s.wide, s.cols}};
    bool vector = c->op->args[i] == 'v';
    c->arg[i] = c->sample[i] ? op_case_tensor(name, form + 2, forms[form])
                : vector     ? op_case_tensor(name, 1, &s.cols)
                             : op_case_tensor(name, 2, matrix);
    op_case_promise(c->arg[i], c->op->args[i]);
  }
}

static inline bool op_case_either(char kind) { return kind == 'x' || kind == 'a'; }

/* Arguments of either kind are samples when `states`. False when the op takes nothing of this form. */
static inline bool op_case_make(op_case *c, const ph_op *op, int64_t d, int form, bool states) {
  ph_shape shape[PH_OP_ARGS];
  *c = (op_case){.op = op, .nargs = ph_op_nargs(op)};
  for (int i = 0; i < c->nargs; i++) {
    c->sample[i] = op->args[i] == 's' || (op_case_either(op->args[i]) && states);
  }
  if (!op->shape || !op_case_fit(c, d, form, shape)) {
    return false;
  }
  op_case_fill(c, form, shape);
  return true;
}

static inline void op_case_drop(op_case *c) {
  for (int i = 0; i < PH_OP_ARGS; i++) {
    ph_tensor_free(c->arg[i]);
    c->arg[i] = NULL;
  }
}

/* Whether the op has an argument of one of these kinds. */
static inline bool op_case_has(const ph_op *op, const char *kinds) { return strpbrk(op->args, kinds) != NULL; }

static inline ph_tensor *op_case_run(const op_case *c, const ph_op *op) {
  ph_tensor *out = NULL;
  ph_err err;
  if (ph_op_eager(op, c->nargs, (const ph_tensor *const *)c->arg, c->sample, c->attr, &out, &err)) {
    fail_msg("%s: %s", op->name, err.text);
  }
  return out;
}

static inline void op_case_back(const op_case *c, const ph_op *op, const ph_tensor *g, ph_tensor **gin) {
  ph_err err;
  if (ph_op_eager_bwd(op, c->nargs, (const ph_tensor *const *)c->arg, c->sample, c->attr, g, gin, &err)) {
    fail_msg("%s: %s", op->name, err.text);
  }
}

/* A random cotangent of the op's output. */
static inline ph_tensor *op_case_cotangent(const op_case *c) {
  ph_tensor *out = op_case_run(c, c->op);
  ph_rng_fill_normal(ph_rng_of(8, c->op->name), 0, 1, out);
  return out;
}

#endif
