/* op_shape_place.c - shape rules of the ops that only move numbers (op_place.c). */
#include <inttypes.h>

#include "ir/op_internal.h"

/* ---- matrices ---- */

ph_status ph_shape_eye(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)in;
  (void)err;
  int64_t n = attr[0] < INT32_MAX ? (int64_t)attr[0] : INT32_MAX;
  *out = ph_shape_param(n, n);
  return PH_OK;
}

ph_status ph_shape_diag(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = ph_shape_param(in[0].cols, in[0].cols);
  return PH_OK;
}

ph_status ph_shape_diagonal(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = ph_shape_param(1, in[0].cols);
  return PH_OK;
}

ph_status ph_shape_hstack(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = ph_shape_param(in[0].rows, in[0].cols + in[1].cols);
  return in[0].rows == in[1].rows ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

ph_status ph_shape_vstack(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = ph_shape_param(in[0].rows + in[1].rows, in[0].cols);
  return in[0].cols == in[1].cols ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

/* ---- features ---- */

ph_status ph_shape_concat(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)attr;
  *out = ph_shape_with_cols(in[0], in[0].cols + in[1].cols);
  return in[0].pos == in[1].pos && in[0].wide == in[1].wide ? PH_OK : ph_shape_mismatch(op, in[0], in[1], err);
}

ph_status ph_shape_slice(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  char buf[96];
  if (attr[0] > attr[1] || attr[1] > (double)in[0].cols) {
    return ph_err_set(err, PH_E_SHAPE, "%s: %g to %g is not a range of the columns of a %s", op->name, attr[0], attr[1],
                      ph_shape_text(in[0], buf, sizeof buf));
  }
  *out = ph_shape_with_cols(in[0], (int64_t)(attr[1] - attr[0]) + 1);
  return PH_OK;
}

/* ---- positions ---- */

static ph_status indivisible(const ph_op *op, const double *attr, ph_shape s, ph_err *err) {
  char buf[96];
  return ph_err_set(err, PH_E_SHAPE, "%s: blocks of %g x %g do not divide a %s", op->name, attr[0], attr[1],
                    ph_shape_text(s, buf, sizeof buf));
}

static bool divides(double by, int64_t n) { return by <= (double)n && n % (int64_t)by == 0; }

ph_status ph_shape_fold(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  if (!divides(attr[0], in[0].pos / in[0].wide) || !divides(attr[1], in[0].wide)) {
    return indivisible(op, attr, in[0], err);
  }
  int64_t wide = (int64_t)attr[1];
  int64_t block = (int64_t)attr[0] * wide;
  *out = ph_shape_sample(in[0].pos / block, in[0].wide / wide, in[0].cols * block);
  return PH_OK;
}

ph_status ph_shape_unfold(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  if (!divides(attr[0] * attr[1], in[0].cols)) {
    return indivisible(op, attr, in[0], err);
  }
  int64_t wide = (int64_t)attr[1];
  int64_t block = (int64_t)attr[0] * wide;
  *out = ph_shape_sample(in[0].pos * block, in[0].wide * wide, in[0].cols / block);
  return PH_OK;
}

ph_status ph_shape_mean_positions(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err) {
  (void)op;
  (void)attr;
  (void)err;
  *out = ph_shape_sample(1, 1, in[0].cols);
  return PH_OK;
}
