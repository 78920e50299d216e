/* op_eager.c - one op on whole tensors: the same rows and kernels as compiled code, without a plan.
 *
 * Tensors hold a sample after the other, a call wants the first position of all samples, then the second (op.h): where a sample
 * has more than one position, operands are tiles beside the tensors.
 */
#include <string.h>

#include "base/mem.h"
#include "ir/op_internal.h"

enum { BLOCKS = 2 * PH_OP_ARGS + 4 }; /* a tile for each argument, the output and their cotangents; scratch and aux */

typedef struct eager {
  ph_call call;
  int64_t samples;
  ph_tensor *out;
  void *block[BLOCKS];
  int blocks;
  bool failed; /* out of memory */
} eager;

static ph_shape shape_of(const ph_tensor *t, bool sample) {
  int64_t cols = t->rank ? t->dim[t->rank - 1] : 1;
  if (!sample) {
    return ph_shape_param(t->rank == 2 ? t->dim[0] : 1, cols);
  }
  int64_t wide = t->rank == 4 ? t->dim[2] : 1;
  return ph_shape_sample((t->rank > 2 ? t->dim[1] : 1) * wide, wide, cols);
}

static int64_t samples_of(const ph_tensor *t) { return t->rank > 1 ? t->dim[0] : 1; }

static ph_status check(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample, int64_t *samples,
                       ph_err *err) {
  if (nargs != ph_op_nargs(op)) {
    return ph_err_set(err, PH_E_ARG, "%s: takes %d arguments, got %d", op->name, ph_op_nargs(op), nargs);
  }
  *samples = -1;
  for (int i = 0; i < nargs; i++) {
    int most = sample[i] ? 4 : 2;
    if (in[i]->rank > most || (in[i]->dtype != PH_F32 && in[i]->dtype != PH_F64) || in[i]->dtype != in[0]->dtype) {
      return ph_err_set(err, PH_E_DTYPE,
                        "%s: argument %d must be an f32 or f64 tensor like the others, of rank at most %d", op->name,
                        i + 1, most);
    }
    if (sample[i] && ph_shape_is_param(shape_of(in[i], true))) {
      return ph_err_set(err, PH_E_SHAPE, "%s: argument %d has no positions", op->name, i + 1);
    }
    if (sample[i] && *samples >= 0 && *samples != samples_of(in[i])) {
      return ph_err_set(err, PH_E_SHAPE, "%s: %lld samples do not fit %lld", op->name, (long long)*samples,
                        (long long)samples_of(in[i]));
    }
    *samples = sample[i] ? samples_of(in[i]) : *samples;
  }
  *samples = *samples < 0 ? 1 : *samples;
  return PH_OK;
}

/* ---- the output's form ---- */

static int param_form(ph_shape out, int nargs, const ph_tensor *const *in, int64_t dim[PH_RANK_MAX]) {
  bool vector = out.rows == 1 && nargs > 0; /* vectors give a vector where the shape allows it */
  for (int i = 0; i < nargs; i++) {
    vector &= in[i]->rank < 2;
  }
  dim[0] = vector ? out.cols : out.rows;
  dim[1] = out.cols;
  return vector ? 1 : 2;
}

static int sample_form(ph_shape out, int64_t samples, int nargs, const ph_tensor *const *in, const bool *sample,
                       int64_t dim[PH_RANK_MAX]) {
  for (int i = 0; i < nargs; i++) {
    ph_shape s = shape_of(in[i], sample[i]);
    if (sample[i] && in[i]->rank > 0 && s.pos == out.pos && s.wide == out.wide) {
      memcpy(dim, in[i]->dim, sizeof in[i]->dim);
      dim[in[i]->rank - 1] = out.cols;
      return in[i]->rank;
    }
  }
  int rank = 0;
  dim[rank++] = samples;
  if (out.pos > 1) {
    dim[rank++] = out.pos / out.wide;
  }
  if (out.wide > 1) {
    dim[rank++] = out.wide;
  }
  dim[rank++] = out.cols;
  return rank;
}

/* ---- operands ---- */

static void *take(eager *e, int64_t elements) {
  void *p = ph_mem_new((size_t)elements, ph_dtype_size(e->call.k->dtype));
  e->failed |= !p;
  e->block[e->blocks++] = p;
  return p;
}

static bool needs_tile(ph_shape s) { return s.pos > 1; }

static ph_opnd operand(eager *e, const ph_tensor *t, ph_shape s) {
  return (ph_opnd){needs_tile(s) ? take(e, s.rows * s.cols) : t->data, s.cols, 0};
}

/* to (b, a) = the transpose of from (a, b), of blocks of `bytes`. */
static void turn(int64_t a, int64_t b, size_t bytes, const char *from, char *to) {
  for (int64_t i = 0; i < a; i++) {
    for (int64_t j = 0; j < b; j++) {
      memcpy(to + (size_t)(j * a + i) * bytes, from + (size_t)(i * b + j) * bytes, bytes);
    }
  }
}

static void load(const eager *e, const ph_opnd *o, const ph_tensor *t, ph_shape s) {
  if (needs_tile(s)) {
    turn(e->samples, s.pos, (size_t)s.cols * ph_dtype_size(t->dtype), t->data, o->p);
  }
}

static void store(const eager *e, const ph_opnd *o, const ph_tensor *t, ph_shape s) {
  if (needs_tile(s)) {
    turn(s.pos, e->samples, (size_t)s.cols * ph_dtype_size(t->dtype), o->p, t->data);
  }
}

/* ---- running ---- */

static ph_status no_memory(const ph_op *op, ph_err *err) {
  return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", op->name);
}

/* Shapes, output and everything forward touches. */
static ph_status prepare(eager *e, const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                         const double *attr, ph_err *err) {
  ph_shape shape[PH_OP_ARGS];
  ph_shape out;
  int64_t dim[PH_RANK_MAX];
  ph_status st = check(op, nargs, in, sample, &e->samples, err);
  for (int i = 0; !st && i < nargs; i++) {
    shape[i] = shape_of(in[i], sample[i]);
  }
  st = st ? st : ph_op_shape(op, shape, attr, &out, err);
  if (st) {
    return st;
  }
  int rank =
      ph_shape_is_param(out) ? param_form(out, nargs, in, dim) : sample_form(out, e->samples, nargs, in, sample, dim);
  ph_dtype dtype = nargs ? in[0]->dtype : PH_F64;
  st = ph_tensor_new(&e->out, dtype, rank, dim, err);
  if (st) {
    return st;
  }
  e->call = ph_op_call(op, shape, out, attr, e->samples);
  ph_call *c = &e->call;
  c->k = ph_kern_get(dtype);
  ph_needs need = ph_op_needs(c);
  c->scratch = take(e, need.scratch);
  c->aux = (ph_opnd){take(e, need.aux * c->out_shape.rows), need.aux, 0};
  c->out = operand(e, e->out, c->out_shape);
  for (int i = 0; i < nargs; i++) {
    c->in[i] = operand(e, in[i], c->in_shape[i]);
  }
  return e->failed ? no_memory(op, err) : PH_OK;
}

static ph_status forward(eager *e, const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                         const double *attr, ph_err *err) {
  ph_status st = prepare(e, op, nargs, in, sample, attr, err);
  if (st) {
    return st;
  }
  for (int i = 0; i < nargs; i++) {
    load(e, &e->call.in[i], in[i], e->call.in_shape[i]);
  }
  op->fwd(&e->call);
  store(e, &e->call.out, e->out, e->call.out_shape);
  return PH_OK;
}

static void release(eager *e) {
  ph_tensor_free(e->out);
  for (int i = 0; i < e->blocks; i++) {
    ph_mem_free(e->block[i]);
  }
}

ph_status ph_op_eager(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample, const double *attr,
                      ph_tensor **out, ph_err *err) {
  eager e = {0};
  ph_status st = forward(&e, op, nargs, in, sample, attr, err);
  if (!st) {
    *out = e.out;
    e.out = NULL;
  }
  release(&e);
  return st;
}

/* g: new tensors for the cotangents of the arguments. */
static ph_status backward(eager *e, const ph_op *op, int nargs, const ph_tensor *gout, ph_tensor **g, ph_err *err) {
  ph_call *c = &e->call;
  if (gout->dtype != e->out->dtype || ph_tensor_count(gout) != ph_tensor_count(e->out)) {
    return ph_err_set(err, PH_E_SHAPE, "%s: the cotangent does not have the shape of the output", op->name);
  }
  c->gout = operand(e, gout, c->out_shape);
  for (int i = 0; i < nargs; i++) {
    c->gin[i] = operand(e, g[i], c->in_shape[i]);
  }
  if (e->failed) {
    return no_memory(op, err);
  }
  load(e, &c->gout, gout, c->out_shape);
  if (op->bwd) {
    op->bwd(c);
  }
  for (int i = 0; i < nargs; i++) {
    store(e, &c->gin[i], g[i], c->in_shape[i]);
  }
  return PH_OK;
}

ph_status ph_op_eager_bwd(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                          const double *attr, const ph_tensor *gout, ph_tensor **gin, ph_err *err) {
  eager e = {0};
  ph_tensor *g[PH_OP_ARGS] = {0};
  ph_status st = forward(&e, op, nargs, in, sample, attr, err);
  for (int i = 0; !st && i < nargs; i++) {
    st = ph_tensor_new(&g[i], in[i]->dtype, in[i]->rank, in[i]->dim, err);
  }
  st = st ? st : backward(&e, op, nargs, gout, g, err);
  if (!st) {
    memcpy(gin, g, (size_t)nargs * sizeof *gin);
    memset(g, 0, sizeof g);
  }
  for (int i = 0; i < PH_OP_ARGS; i++) {
    ph_tensor_free(g[i]);
  }
  release(&e);
  return st;
}
