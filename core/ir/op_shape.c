/* op_shape.c - what each op accepts: attributes and argument kinds as its row says, then its rule of shapes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ir/op_internal.h"

const char *ph_shape_text(ph_shape s, char *buf, size_t size) {
  if (ph_shape_is_param(s)) {
    snprintf(buf, size, "matrix (%" PRId64 ", %" PRId64 ")", s.rows, s.cols);
  } else if (s.pos == 1) {
    snprintf(buf, size, "state of width %" PRId64, s.cols);
  } else if (s.wide == 1) {
    snprintf(buf, size, "state of %" PRId64 " positions and width %" PRId64, s.pos, s.cols);
  } else {
    snprintf(buf, size, "state of %" PRId64 " x %" PRId64 " positions and width %" PRId64, s.pos / s.wide, s.wide,
             s.cols);
  }
  return buf;
}

ph_status ph_shape_mismatch(const ph_op *op, ph_shape a, ph_shape b, ph_err *err) {
  char ta[96];
  char tb[96];
  return ph_err_set(err, PH_E_SHAPE, "%s: a %s does not fit a %s", op->name, ph_shape_text(a, ta, sizeof ta),
                    ph_shape_text(b, tb, sizeof tb));
}

/* ---- what the row says ---- */

static const struct {
  const char *name, *text;
  double least;
  bool open, whole; /* open: above `least`, not at it */
} attr_kinds[] = {[PH_ATTR_REAL] = {"real", "finite", -INFINITY, true, false},
                  [PH_ATTR_POSITIVE] = {"positive", "a positive number", 0, true, false},
                  [PH_ATTR_COUNT] = {"count", "a whole number from 1", 1, false, true},
                  [PH_ATTR_INDEX] = {"index", "a whole number from 0", 0, false, true}};

const char *ph_attr_kind_name(ph_attr_kind kind) { return attr_kinds[kind].name; }

static ph_status check_attr(const ph_op *op, int i, double v, ph_err *err) {
  ph_attr_kind k = op->attr[i].kind;
  bool inside = isfinite(v) && (attr_kinds[k].open ? v > attr_kinds[k].least : v >= attr_kinds[k].least);
  if (!inside || (attr_kinds[k].whole && v != floor(v))) {
    return ph_err_set(err, PH_E_ARG, "%s: %s must be %s, got %g", op->name, op->attr[i].name, attr_kinds[k].text, v);
  }
  return PH_OK;
}

static ph_status check_arg(const ph_op *op, int i, ph_shape s, ph_err *err) {
  bool param = ph_shape_is_param(s);
  bool square = param && s.rows == s.cols;
  const char *want = NULL;
  switch (op->args[i]) {
  case 'm': want = param ? NULL : "a matrix"; break;
  case 'q':
  case 'k':
  case 'p':
  case 'r': want = square ? NULL : "a square matrix"; break;
  case 'v': want = param && s.rows == 1 ? NULL : "a parameter vector (1, d)"; break;
  case 's': want = param ? "a state" : NULL; break;
  default: break;
  }
  char buf[96];
  return want ? ph_err_set(err, PH_E_SHAPE, "%s: argument %d must be %s, got a %s", op->name, i + 1, want,
                           ph_shape_text(s, buf, sizeof buf))
              : PH_OK;
}

static ph_status check_size(const ph_op *op, ph_shape s, ph_err *err) {
  enum { MOST = 1 << 26 };
  char buf[96];
  int64_t numbers = (ph_shape_is_param(s) ? s.rows : s.pos) * s.cols;
  return numbers <= MOST ? PH_OK
                         : ph_err_set(err, PH_E_LIMIT, "%s: gives a %s; a value has at most %d numbers", op->name,
                                      ph_shape_text(s, buf, sizeof buf), MOST);
}

ph_status ph_op_shape(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  if (!op->shape) {
    return ph_err_set(err, PH_E_ARG, "%s: has no meaning outside a stream", op->name);
  }
  ph_status st = PH_OK;
  for (int i = 0; !st && i < PH_OP_ATTRS && op->attr[i].name; i++) {
    st = check_attr(op, i, attr[i], err);
  }
  for (int i = 0; !st && op->args[i]; i++) {
    st = check_arg(op, i, in[i], err);
  }
  st = st ? st : op->shape(op, in, attr, out, err);
  return st ? st : check_size(op, *out, err);
}

/* ---- rules ---- */

ph_status ph_shape_same(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = in[0];
  return PH_OK;
}

ph_status ph_shape_gram(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = ph_shape_param(in[0].rows, in[0].rows);
  return PH_OK;
}

ph_status ph_shape_transpose(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = ph_shape_param(in[0].cols, in[0].rows);
  return PH_OK;
}

ph_status ph_shape_pair(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = in[0];
  return ph_shape_equal(in[0], in[1]) ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

ph_status ph_shape_matmul(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = ph_shape_param(in[0].rows, in[1].cols);
  return in[0].cols == in[1].rows ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

ph_status ph_shape_apply(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = ph_shape_with_cols(in[1], in[0].rows);
  return in[0].cols == in[1].cols ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

/* A state and vectors of its width. */
ph_status ph_shape_vectors(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = in[0];
  for (int i = 1; op->args[i]; i++) {
    if (in[i].cols != in[0].cols) {
      return ph_shape_mismatch(op, in[0], in[i], err);
    }
  }
  return PH_OK;
}

ph_status ph_shape_all(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  for (int i = 1; op->args[i + 1]; i++) {
    ph_status st = ph_shape_pair(op, &in[i], attr, out, err);
    if (st) {
      return st;
    }
  }
  return ph_shape_pair(op, in, attr, out, err);
}

ph_status ph_shape_solve(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = in[1];
  return in[0].cols == in[1].rows ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

ph_status ph_shape_dot(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  ph_status st = ph_shape_pair(op, in, attr, out, err);
  *out = ph_shape_with_cols(*out, 1);
  return st;
}
