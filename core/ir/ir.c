/* ir.c - the model as a structure: words of initial values, shapes of segments, freeing. */
#include "ir/ir.h"

#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

/* ---- words ---- */

static const struct {
  const char *name;
  bool scaled;
} INIT[PH_INIT_COUNT] = {[PH_INIT_ZEROS] = {"zeros", false},
                         [PH_INIT_ONES] = {"ones", false},
                         [PH_INIT_CONSTANT] = {"constant", true},
                         [PH_INIT_NORMAL] = {"normal", true},
                         [PH_INIT_UNIFORM] = {"uniform", true}};

const char *ph_init_name(ph_init init) { return INIT[init].name; }

bool ph_init_scaled(ph_init init) { return INIT[init].scaled; }

/* ---- freeing ---- */

static void segment_free(ph_ir_segment *s) {
  ph_ir_tables_free(&s->tables);
  void *const block[] = {s->param, s->node, s->term, s->observe};
  for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
    ph_mem_free(block[i]);
  }
}

void ph_ir_free(ph_ir *ir) {
  if (!ir) {
    return;
  }
  for (int i = 0; i < ir->nsegments; i++) {
    segment_free(&ir->segment[i]);
  }
  ph_mem_free(ir->segment);
  ph_ir_tables_free(&ir->tables);
  ph_mem_free(ir);
}

/* ---- shapes ---- */

ph_status ph_ir_segment_open(ph_ir_segment *s, ph_shape in, ph_err *err) {
  s->in = in;
  if (!s->driven) {
    s->state = s->from_zero ? s->state : in;
    return PH_OK;
  }
  int64_t wanted = s->repeat + (s->from_zero ? 0 : 1);
  if (ph_shape_places(in) != wanted) {
    return ph_err_set(err, PH_E_SHAPE, "a stream driven for %lld iterations takes %lld positions, got %lld%s",
                      (long long)s->repeat, (long long)wanted, (long long)ph_shape_places(in),
                      in.wide > 1 ? " on the first axis" : "");
  }
  s->input = ph_shape_place(in);
  s->state = s->from_zero ? s->state : s->input;
  return PH_OK;
}

static ph_shape ref_shape(const ph_ir_segment *s, ph_ir_ref r) {
  return r.is_param ? ph_shape_param(s->param[r.index].rows, s->param[r.index].cols) : s->node[r.index].shape;
}

static ph_status leaf_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) {
  if (n->op->role == PH_ROLE_STATE) {
    n->shape = s->state;
    return PH_OK;
  }
  if (!s->driven) {
    return ph_err_set(err, PH_E_SHAPE, "only a driven stream has an input at each iteration");
  }
  n->shape = s->input;
  return PH_OK;
}

/* The op's rule at every iteration: what a table gives must be allowed each time. */
static ph_status rule_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) {
  ph_shape in[PH_IR_ARGS];
  int64_t times = 1;
  for (int i = 0; i < n->nargs; i++) {
    in[i] = ref_shape(s, n->arg[i]);
  }
  for (int a = 0; a < PH_OP_ATTRS; a++) {
    times = n->table[a] >= 0 ? s->repeat : times;
  }
  for (int64_t t = times - 1; t >= 0; t--) { /* ends with the attributes of iteration 0 */
    ph_ir_attrs(s, n->attr, n->table, t);
    ph_status st = ph_op_shape(n->op, in, n->attr, &n->shape, err);
    if (st) {
      return times > 1 ? ph_err_prefix(err, st, "iteration %lld", (long long)t) : st;
    }
  }
  if (times > 1 && s->tied && ph_shape_is_param(n->shape)) {
    return ph_err_set(
        err, PH_E_SHAPE,
        "%s: in a tied stream a parameter value is the same at every iteration; a table can scale a state",
        n->op->name);
  }
  return PH_OK;
}

static unsigned parts_of(const ph_ir_segment *s, const ph_ir_node *n) {
  unsigned arg[PH_IR_ARGS] = {0};
  for (int i = 0; i < n->nargs; i++) {
    arg[i] = n->arg[i].is_param ? 0 : s->node[n->arg[i].index].parts;
  }
  return ph_shape_is_param(n->shape) ? 0 : ph_op_parts(n->op, arg);
}

ph_status ph_ir_node_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) {
  ph_status st = n->op->shape == NULL ? leaf_shape(s, n, err) : rule_shape(s, n, err);
  if (!st) {
    n->parts = parts_of(s, n);
  }
  return st;
}

static ph_status read_shape(ph_ir_segment *s, ph_err *err) {
  ph_shape read = s->node[s->read].shape;
  if (ph_shape_is_param(read)) {
    return ph_err_set(err, PH_E_SHAPE, "what is read at each iteration must be a state, not a matrix");
  }
  if (read.wide > 1 || read.pos * s->repeat > PH_IR_MAX_POS) {
    return ph_err_set(err, PH_E_SHAPE,
                      "what is read at each iteration must have its positions on one axis, and over all iterations at "
                      "most %d of them",
                      PH_IR_MAX_POS);
  }
  s->out = ph_shape_sample(read.pos * s->repeat, read.pos, read.cols);
  return PH_OK;
}

ph_status ph_ir_segment_close(ph_ir_segment *s, ph_err *err) {
  ph_shape result = s->node[s->result].shape;
  if (ph_shape_is_param(result)) {
    return ph_err_set(err, PH_E_SHAPE, "the result of a segment must be a state, not a matrix");
  }
  if (!s->once && !ph_shape_equal(result, s->state)) {
    return ph_err_set(err, PH_E_SHAPE, "a stream must give back a state of %lld x %lld, not %lld x %lld",
                      (long long)s->state.pos, (long long)s->state.cols, (long long)result.pos, (long long)result.cols);
  }
  s->out = result;
  return s->read >= 0 ? read_shape(s, err) : PH_OK;
}

bool ph_ir_has_loss(const ph_ir *ir) {
  bool has = ir->loss->run != NULL;
  for (int i = 0; i < ir->nsegments; i++) {
    has = has || ir->segment[i].nterms > 0;
  }
  return has;
}

/* ---- parameters shared by name ---- */

static const ph_ir_param *param_named(const ph_ir_segment *s, const char *name) {
  for (int i = 0; i < s->nparams; i++) {
    if (strcmp(s->param[i].name, name) == 0) {
      return &s->param[i];
    }
  }
  return NULL;
}

const ph_ir_segment *ph_ir_namesake(const ph_ir *ir, const ph_ir_segment *s) {
  for (const ph_ir_segment *t = ir->segment; t < s; t++) {
    if (strcmp(t->name, s->name) == 0) {
      return t;
    }
  }
  return NULL;
}

ph_status ph_ir_param_shared(const ph_ir *ir, const ph_ir_segment *s, const ph_ir_param *p, ph_err *err) {
  for (const ph_ir_segment *t = ir->segment; t < s; t++) {
    const ph_ir_param *q = strcmp(t->name, s->name) == 0 ? param_named(t, p->name) : NULL;
    if (q && (q->rows != p->rows || q->cols != p->cols || q->init != p->init || q->scale != p->scale)) {
      return ph_err_set(err, PH_E_SHAPE,
                        "the parameter %s.%s is %d x %d, %s in one segment and %d x %d, %s in another%s", s->name,
                        p->name, q->rows, q->cols, ph_init_name(q->init), p->rows, p->cols, ph_init_name(p->init),
                        q->init == p->init && q->rows == p->rows && q->cols == p->cols ? " with another number" : "");
    }
  }
  return PH_OK;
}
