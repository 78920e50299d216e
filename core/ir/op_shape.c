/* op_shape.c - shape rules of the op table: what each op accepts, and both sides of the mismatch when it does not. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ir/op_internal.h"

static const char *shape_text(ph_shape s, char *buf, size_t size) {
  if (ph_shape_is_param(s)) {
    snprintf(buf, size, "matrix (%" PRId64 ", %" PRId64 ")", s.rows, s.cols);
  } else if (s.pos == 1) {
    snprintf(buf, size, "state of width %" PRId64, s.cols);
  } else if (s.wide == 1) {
    snprintf(buf, size, "states of %" PRId64 " positions and width %" PRId64, s.pos, s.cols);
  } else {
    snprintf(buf, size, "states of %" PRId64 " x %" PRId64 " positions and width %" PRId64, s.pos / s.wide, s.wide,
             s.cols);
  }
  return buf;
}

static ph_status want(const ph_op *op, int i, const char *what, ph_shape got, ph_err *err) {
  char buf[96];
  return ph_err_set(err, PH_E_SHAPE, "%s: argument %d must be %s, got a %s", op->name, i + 1, what,
                    shape_text(got, buf, sizeof buf));
}

static ph_status mismatch(const ph_op *op, ph_shape a, ph_shape b, ph_err *err) {
  char ta[96];
  char tb[96];
  return ph_err_set(err, PH_E_SHAPE, "%s: a %s does not fit a %s", op->name, shape_text(a, ta, sizeof ta),
                    shape_text(b, tb, sizeof tb));
}

ph_status ph_shape_leaf(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)in;
  (void)attr;
  (void)out;
  return ph_err_set(err, PH_E_ARG, "%s: has no meaning outside a stream", op->name);
}

ph_status ph_shape_square(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (!ph_shape_is_param(in[0]) || in[0].rows != in[0].cols) {
    return want(op, 0, "a square matrix", in[0], err);
  }
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_gram(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (!ph_shape_is_param(in[0])) {
    return want(op, 0, "a matrix", in[0], err);
  }
  *out = ph_shape_param(in[0].rows, in[0].rows);
  return PH_OK;
}

static ph_status positive(const ph_op *op, int i, double v, ph_err *err) {
  if (!(v > 0) || !isfinite(v)) {
    return ph_err_set(err, PH_E_ARG, "%s: %s must be a positive number, got %g", op->name, op->attr[i], v);
  }
  return PH_OK;
}

ph_status ph_shape_guard(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  if (!ph_shape_is_param(in[0])) {
    return want(op, 0, "a matrix", in[0], err);
  }
  for (int i = 0; i < 2; i++) {
    ph_status st = positive(op, i, attr[i], err);
    if (st) {
      return st;
    }
  }
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_damping(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  ph_status st = positive(op, 0, attr[0], err);
  return st ? st : ph_shape_square(op, in, attr, out, err);
}

ph_status ph_shape_matmul(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  for (int i = 0; i < 2; i++) {
    if (!ph_shape_is_param(in[i])) {
      return want(op, i, "a matrix", in[i], err);
    }
  }
  if (in[0].cols != in[1].rows) {
    return mismatch(op, in[0], in[1], err);
  }
  *out = ph_shape_param(in[0].rows, in[1].cols);
  return PH_OK;
}

ph_status ph_shape_transpose(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (!ph_shape_is_param(in[0])) {
    return want(op, 0, "a matrix", in[0], err);
  }
  *out = ph_shape_param(in[0].cols, in[0].rows);
  return PH_OK;
}

ph_status ph_shape_same(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  if (op->attr[0] && !isfinite(attr[0])) {
    return ph_err_set(err, PH_E_ARG, "%s: %s must be finite, got %g", op->name, op->attr[0], attr[0]);
  }
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_pair(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (!ph_shape_equal(in[0], in[1])) {
    return mismatch(op, in[0], in[1], err);
  }
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_apply(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (!ph_shape_is_param(in[0])) {
    return want(op, 0, "a matrix", in[0], err);
  }
  if (ph_shape_is_param(in[1])) {
    return want(op, 1, "a state", in[1], err);
  }
  if (in[0].cols != in[1].cols) {
    return mismatch(op, in[0], in[1], err);
  }
  *out = ph_shape_with_cols(in[1], in[0].rows);
  return PH_OK;
}

static ph_status row_vector(const ph_op *op, int i, const ph_shape *in, ph_err *err) {
  if (!ph_shape_is_param(in[i]) || in[i].rows != 1) {
    return want(op, i, "a parameter vector (1, d)", in[i], err);
  }
  return in[i].cols == in[0].cols ? PH_OK : mismatch(op, in[0], in[i], err);
}

ph_status ph_shape_bias(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  if (ph_shape_is_param(in[0])) {
    return want(op, 0, "a state", in[0], err);
  }
  ph_status st = row_vector(op, 1, in, err);
  if (st) {
    return st;
  }
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_layernorm(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  ph_status st = positive(op, 0, attr[0], err);
  if (st) {
    return st;
  }
  if (ph_shape_is_param(in[0])) {
    return want(op, 0, "a state", in[0], err);
  }
  for (int i = 1; i < 3; i++) {
    st = row_vector(op, i, in, err);
    if (st) {
      return st;
    }
  }
  *out = in[0];
  return PH_OK;
}
