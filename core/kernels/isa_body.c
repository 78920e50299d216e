/* isa_body.c - the one source of all kernels: compiled per instruction set (PH_ISA) and element type (PH_REAL) with its own
 * flags; exports one table. */
#include "kernels/isa_act.h"
#include "kernels/isa_cholesky.h"
#include "kernels/isa_gemm.h"
#include "kernels/isa_inverse.h"
#include "kernels/isa_loss.h"
#include "kernels/isa_norm.h"
#include "kernels/isa_optim.h"
#include "kernels/isa_pair.h"
#include "kernels/isa_tile.h"
#include "kernels/kern_tables.h"

#if PH_DOUBLE
#include "kernels/isa_abreast.h"
#include "kernels/isa_normal.h"
#endif

#if PH_DOUBLE
#define PH_TABLE PH_PASTE(PH_PASTE(ph_kern_, PH_ISA), _f64)
#else
#define PH_TABLE PH_PASTE(PH_PASTE(ph_kern_, PH_ISA), _f32)
#endif

const ph_kern PH_TABLE = {
    .name = PH_TEXT(PH_ISA),
    .dtype = PH_DOUBLE ? PH_F64 : PH_F32,
    .lanes = PH_LANES,
    .epsilon = PH_DOUBLE ? 0x1p-52 : 0x1p-23,
    .gemm = k_gemm,
    .transpose = k_transpose,
    .act = k_act,
    .act_bwd = k_act_bwd,
    .axpby = k_axpby,
    .mul = k_mul,
    .div = k_div,
    .where = k_where,
    .mul_row = k_mul_row,
    .mul_col = k_mul_col,
    .coldot = k_coldot,
    .rowdot = k_rowdot,
    .softmax = k_softmax,
    .softmax_bwd = k_softmax_bwd,
    .colsum = k_colsum,
    .add_row = k_add_row,
    .layernorm = k_layernorm,
    .layernorm_bwd = k_layernorm_bwd,
    .softmax_ce = k_softmax_ce,
    .misfit = k_misfit,
    .rownorm = k_rownorm,
    .inverse = k_inverse,
    .solve = k_solve,
    .cholesky = k_cholesky,
    .cholesky_bwd = k_cholesky_bwd,
    .add_diagonal = k_add_diagonal,
    .trace = k_trace,
    .skew = k_skew,
    .adam = k_adam,
    .sgd = k_sgd,
    .first_nonfinite = k_first_nonfinite,
    .sumsq = k_sumsq,
    .dot = k_dot,
#if PH_DOUBLE
    .normal = k_normal,
    .normal8 = k_normal8,
    .cayley8 = k_cayley8,
    .damp8 = k_damp8,
    .gram8 = k_gram8,
    .gemv8 = k_gemv8,
    .norm8 = k_norm8,
#endif
};
