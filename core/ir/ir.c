/* ir.c - the model as a structure: freeing, and the shape pass that follows parsing. */
#include "ir/ir.h"

#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

void ph_ir_free(ph_ir *ir) {
  if (!ir) {
    return;
  }
  for (int i = 0; i < ir->nsegments; i++) {
    ph_mem_free(ir->segment[i].param);
    ph_mem_free(ir->segment[i].node);
  }
  ph_mem_free(ir->segment);
  ph_mem_free(ir);
}

ph_shape ph_ir_ref_shape(const ph_ir_segment *s, ph_ir_ref r) {
  return r.is_param ? ph_shape_param(s->param[r.index].rows, s->param[r.index].cols) : s->node[r.index].shape;
}

ph_status ph_ir_segment_open(ph_ir_segment *s, ph_shape in, ph_err *err) {
  s->in = in;
  if (s->kind != PH_SEG_TIME) {
    s->state = in;
    return PH_OK;
  }
  if (in.pos != s->repeat) {
    return ph_err_set(err, PH_E_SHAPE, "a stream over %lld steps does not fit an input of %lld positions",
                      (long long)s->repeat, (long long)in.pos);
  }
  s->state = ph_shape_sample(1, 1, s->width);
  return PH_OK;
}

ph_status ph_ir_node_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) {
  if (n->op->role == PH_ROLE_STATE) {
    n->shape = s->state;
    return PH_OK;
  }
  if (n->op->role == PH_ROLE_INPUT) {
    if (s->kind != PH_SEG_TIME) {
      return ph_err_set(err, PH_E_SHAPE, "only a stream over time has an input at each step");
    }
    n->shape = ph_shape_sample(1, 1, s->in.cols);
    return PH_OK;
  }
  ph_shape in[PH_IR_ARGS];
  for (int i = 0; i < n->nargs; i++) {
    in[i] = ph_ir_ref_shape(s, n->arg[i]);
  }
  return ph_op_shape(n->op, in, n->attr, &n->shape, err);
}

ph_status ph_ir_segment_close(ph_ir_segment *s, ph_err *err) {
  ph_shape result = s->node[s->result].shape;
  if (ph_shape_is_param(result)) {
    return ph_err_set(err, PH_E_SHAPE, "the result of a segment must be a state, not a matrix");
  }
  if (s->kind != PH_SEG_ONCE && !ph_shape_equal(result, s->state)) {
    return ph_err_set(err, PH_E_SHAPE, "a stream must give back a state of width %lld, not %lld",
                      (long long)s->state.cols, (long long)result.cols);
  }
  s->out = result;
  if (s->read >= 0) {
    ph_shape read = s->node[s->read].shape;
    if (ph_shape_is_param(read)) {
      return ph_err_set(err, PH_E_SHAPE, "what is read at each step must be a state, not a matrix");
    }
    s->out = ph_shape_sample(s->repeat, 1, read.cols);
  }
  return PH_OK;
}
