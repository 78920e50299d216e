/* op_internal.h - what the files that make up the op table share. Nothing outside core/ir includes it. */
#ifndef PH_IR_OP_INTERNAL_H
#define PH_IR_OP_INTERNAL_H

#include "ir/op.h"

/* Address of matrix i of an operand. */
static inline void *ph_op_at_step(const ph_call *c, const ph_opnd *o, int64_t i) {
  return (char *)o->p + i * o->step * (int64_t)ph_dtype_size(c->k->dtype);
}

/* Address `elements` into the call's scratch. */
static inline void *ph_op_scratch(const ph_call *c, int64_t elements) {
  return (char *)c->scratch + elements * (int64_t)ph_dtype_size(c->k->dtype);
}

/* ---- shape rules (op_shape.c) ---- */
typedef ph_status ph_shape_rule(const struct ph_op *op, const ph_shape *in, const double *attr, ph_shape *out,
                                ph_err *err);
ph_shape_rule ph_shape_same, ph_shape_gram, ph_shape_matmul, ph_shape_transpose, ph_shape_pair, ph_shape_apply,
    ph_shape_vectors;

/* ---- parameter values (op_param.c, op_guard.c) ---- */
typedef void ph_op_fn(const ph_call *c);
ph_op_fn ph_op_skew, ph_op_skew_bwd, ph_op_gram, ph_op_gram_bwd, ph_op_guard, ph_op_guard_bwd, ph_op_cayley,
    ph_op_cayley_bwd, ph_op_damping, ph_op_damping_bwd, ph_op_matmul, ph_op_matmul_bwd, ph_op_transpose,
    ph_op_transpose_bwd;

/* ---- values of either kind (op_tile.c) ---- */
ph_op_fn ph_op_scale, ph_op_scale_bwd, ph_op_add, ph_op_add_bwd, ph_op_sub, ph_op_sub_bwd, ph_op_mul, ph_op_mul_bwd,
    ph_op_act, ph_op_act_bwd;

/* ---- sample values (op_tile.c) ---- */
ph_op_fn ph_op_apply, ph_op_apply_bwd, ph_op_bias, ph_op_bias_bwd, ph_op_layernorm, ph_op_layernorm_bwd;

#endif
