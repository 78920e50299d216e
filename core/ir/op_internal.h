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

/* Address of row r, column j of matrix i of an operand. */
static inline char *ph_op_place(const ph_call *c, const ph_opnd *o, int64_t i, int64_t r, int64_t j) {
  return (char *)o->p + (i * o->step + r * o->ld + j) * (int64_t)ph_dtype_size(c->k->dtype);
}

/* ---- the rows (table_param.c, table_value.c) ---- */
typedef struct ph_op_group {
  const ph_op *row;
  int n;
} ph_op_group;
extern const ph_op_group ph_op_params;
extern const ph_op_group ph_op_values;

double ph_flops_one(const ph_call *c);     /* one an entry of the output */
double ph_flops_product(const ph_call *c); /* each entry of the output is a sum over the columns of the first matrix */

/* ---- shape rules (op_shape.c, op_shape_place.c) ---- */
typedef ph_status ph_shape_rule(const struct ph_op *op, const ph_shape *in, const double *attr, ph_shape *out,
                                ph_err *err);
ph_shape_rule ph_shape_same, ph_shape_gram, ph_shape_matmul, ph_shape_transpose, ph_shape_pair, ph_shape_apply,
    ph_shape_vectors, ph_shape_all, ph_shape_solve, ph_shape_dot, ph_shape_eye, ph_shape_diag, ph_shape_diagonal,
    ph_shape_hstack, ph_shape_vstack, ph_shape_concat, ph_shape_slice, ph_shape_fold, ph_shape_unfold,
    ph_shape_mean_positions;
/* "argument shapes do not fit" with both of them. */
ph_status ph_shape_mismatch(const ph_op *op, ph_shape a, ph_shape b, ph_err *err);
/* "matrix (3, 4)", "state of 12 positions and width 3" */
const char *ph_shape_text(ph_shape s, char *buf, size_t size);

/* ---- parameter values (op_param.c, op_guard.c, op_solve.c) ---- */
typedef void ph_op_fn(const ph_call *c);
ph_op_fn ph_op_skew, ph_op_skew_bwd, ph_op_gram, ph_op_gram_bwd, ph_op_guard, ph_op_guard_bwd, ph_op_cayley,
    ph_op_cayley_bwd, ph_op_damping, ph_op_damping_bwd, ph_op_matmul, ph_op_matmul_bwd, ph_op_transpose,
    ph_op_transpose_bwd, ph_op_inverse, ph_op_inverse_bwd, ph_op_solve, ph_op_solve_bwd, ph_op_cholesky,
    ph_op_cholesky_bwd;

/* ---- values of either kind (op_tile.c) ---- */
ph_op_fn ph_op_scale, ph_op_scale_bwd, ph_op_add, ph_op_add_bwd, ph_op_sub, ph_op_sub_bwd, ph_op_mul, ph_op_mul_bwd,
    ph_op_act, ph_op_act_bwd;

/* ---- numbers that change places (op_place.c) ---- */
ph_op_fn ph_op_eye, ph_op_diag, ph_op_diag_bwd, ph_op_diagonal, ph_op_diagonal_bwd, ph_op_join_rows,
    ph_op_join_rows_bwd, ph_op_join_cols, ph_op_join_cols_bwd, ph_op_slice, ph_op_slice_bwd, ph_op_fold, ph_op_fold_bwd,
    ph_op_unfold, ph_op_unfold_bwd, ph_op_mean_positions, ph_op_mean_positions_bwd;

/* ---- pairs of values (op_pair.c) ---- */
ph_op_fn ph_op_div, ph_op_div_bwd, ph_op_where, ph_op_where_bwd, ph_op_softmax, ph_op_softmax_bwd, ph_op_stretch,
    ph_op_stretch_bwd, ph_op_dot, ph_op_dot_bwd;

/* ---- sample values (op_tile.c) ---- */
ph_op_fn ph_op_apply, ph_op_apply_bwd, ph_op_bias, ph_op_bias_bwd, ph_op_layernorm, ph_op_layernorm_bwd;

#endif
