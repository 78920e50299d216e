/* op_eager.c - one op on whole tensors: the same rows and kernels as compiled code, without a plan. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/op_internal.h"

typedef struct eager {
  ph_call call;
  ph_tensor *out;
  void *scratch, *aux;
} eager;

static ph_shape shape_of(const ph_tensor *t, bool sample) {
  if (sample) { /* (n, cols): one position */
    return (ph_shape){1, 1, t->rank == 2 ? t->dim[1] : t->dim[0]};
  }
  return t->rank == 2 ? (ph_shape){0, t->dim[0], t->dim[1]} : (ph_shape){0, 1, t->rank == 1 ? t->dim[0] : 1};
}

static int64_t rows_in(const ph_tensor *t) { return t->rank == 2 ? t->dim[0] : 1; }

static ph_status check(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample, int64_t *rows,
                       ph_err *err) {
  if (nargs != op->nargs || !op->fwd) {
    return ph_err_set(err, PH_E_ARG, "%s: takes %d arguments, got %d", op->name, op->nargs, nargs);
  }
  *rows = -1;
  for (int i = 0; i < nargs; i++) {
    if (in[i]->rank > 2 || (in[i]->dtype != PH_F32 && in[i]->dtype != PH_F64) || in[i]->dtype != in[0]->dtype) {
      return ph_err_set(err, PH_E_DTYPE,
                        "%s: argument %d must be an f32 or f64 tensor of rank at most 2 like the others", op->name,
                        i + 1);
    }
    if (sample[i] && *rows >= 0 && *rows != rows_in(in[i])) {
      return ph_err_set(err, PH_E_SHAPE, "%s: %lld samples do not fit %lld", op->name, (long long)*rows,
                        (long long)rows_in(in[i]));
    }
    *rows = sample[i] ? rows_in(in[i]) : *rows;
  }
  return PH_OK;
}

static ph_status new_output(eager *e, const ph_op *op, const ph_tensor *const *in, ph_shape out, int64_t rows,
                            ph_err *err) {
  int64_t dim[2] = {ph_shape_is_param(out) ? out.rows : rows, out.cols};
  bool vector = true; /* rank-1 arguments give a rank-1 result where the shape allows it */
  for (int i = 0; i < op->nargs; i++) {
    if (in[i]->rank == 2 && !(ph_shape_is_param(shape_of(in[i], false)) && strcmp(op->name, "apply") == 0 && i == 0)) {
      vector = false;
    }
  }
  if (vector && dim[0] == 1) {
    return ph_tensor_new(&e->out, in[0]->dtype, 1, &dim[1], err);
  }
  return ph_tensor_new(&e->out, in[0]->dtype, 2, dim, err);
}

static ph_opnd operand(const ph_tensor *t, ph_shape s) { return (ph_opnd){t->data, s.cols, 0}; }

static ph_status prepare(eager *e, const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                         const double *attr, ph_err *err) {
  int64_t rows = 0;
  ph_status st = check(op, nargs, in, sample, &rows, err);
  if (st) {
    return st;
  }
  ph_call *c = &e->call;
  ph_shape shape[PH_OP_ARGS];
  for (int i = 0; i < nargs; i++) {
    shape[i] = shape_of(in[i], sample[i]);
  }
  st = op->shape(op, shape, attr, &c->out_shape, err);
  st = st ? st : new_output(e, op, in, c->out_shape, rows, err);
  if (st) {
    return st;
  }
  c->k = ph_kern_get(in[0]->dtype);
  c->count = 1;
  memcpy(c->attr, attr, sizeof c->attr);
  size_t size = ph_dtype_size(in[0]->dtype);
  int64_t need = op->scratch ? op->scratch(shape, &c->out_shape) : 0;
  e->scratch = ph_mem_new((size_t)need, size);
  e->aux = ph_mem_new((size_t)(op->aux * (rows > 0 ? rows : 1)), size);
  if (!e->scratch || !e->aux) {
    return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", op->name);
  }
  c->scratch = e->scratch;
  c->aux = (ph_opnd){e->aux, op->aux, 0};
  for (int i = 0; i < nargs; i++) {
    c->in_shape[i] = shape[i];
    c->in_shape[i].rows = sample[i] ? rows : shape[i].rows;
    c->in[i] = operand(in[i], shape[i]);
  }
  c->out_shape.rows = ph_shape_is_param(c->out_shape) ? c->out_shape.rows : rows;
  c->out = operand(e->out, c->out_shape);
  op->fwd(c);
  return PH_OK;
}

static void release(eager *e) {
  ph_tensor_free(e->out);
  ph_mem_free(e->scratch);
  ph_mem_free(e->aux);
}

ph_status ph_op_eager(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample, const double *attr,
                      ph_tensor **out, ph_err *err) {
  eager e = {0};
  ph_status st = prepare(&e, op, nargs, in, sample, attr, err);
  if (!st) {
    *out = e.out;
    e.out = NULL;
  }
  release(&e);
  return st;
}

ph_status ph_op_eager_bwd(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                          const double *attr, const ph_tensor *gout, ph_tensor **gin, ph_err *err) {
  eager e = {0};
  ph_tensor *g[PH_OP_ARGS] = {0};
  ph_status st = prepare(&e, op, nargs, in, sample, attr, err);
  if (!st && (gout->dtype != e.out->dtype || ph_tensor_count(gout) != ph_tensor_count(e.out))) {
    st = ph_err_set(err, PH_E_SHAPE, "%s: the cotangent does not have the shape of the output", op->name);
  }
  for (int i = 0; !st && i < nargs; i++) {
    st = ph_tensor_new(&g[i], in[i]->dtype, in[i]->rank, in[i]->dim, err);
    if (!st) {
      e.call.gin[i] = operand(g[i], e.call.in_shape[i]);
    }
  }
  if (!st) {
    e.call.gout = operand(gout, e.call.out_shape);
    op->bwd(&e.call);
    memcpy(gin, g, (size_t)nargs * sizeof *gin);
    memset(g, 0, sizeof g);
  }
  for (int i = 0; i < PH_OP_ARGS; i++) {
    ph_tensor_free(g[i]);
  }
  release(&e);
  return st;
}
