/* op.c - the table of operations. One row is all there is to an op; docs/language.md is generated from it. */
#include "ir/op.h"

#include <string.h>

#include "ir/op_internal.h"

/* ---- scratch and flop rules ---- */

static int64_t scratch_square(const ph_call *c) { return c->out_shape.rows * c->out_shape.cols; }
static int64_t scratch_first(const ph_call *c) { return c->in_shape[0].rows * c->in_shape[0].cols; }
static int64_t scratch_second(const ph_call *c) { return c->in_shape[1].rows * c->in_shape[1].cols; }
static int64_t scratch_inverse(const ph_call *c) { return PH_INV_SCRATCH(c->out_shape.rows); }
static int64_t scratch_guard(const ph_call *c) {
  return 3 * c->in_shape[0].rows * c->in_shape[0].rows + scratch_first(c);
}
static int64_t scratch_gram(const ph_call *c) {
  int64_t forward = scratch_first(c);
  int64_t backward = scratch_square(c);
  return forward > backward ? forward : backward;
}

static int64_t aux_two(const ph_call *c) {
  (void)c;
  return 2;
}

static double flops_one(const ph_call *c) { return (double)c->out_shape.rows * (double)c->out_shape.cols; }
static double flops_ten(const ph_call *c) { return 10 * flops_one(c); }
static double flops_inverse(const ph_call *c) { return 2.0 * (double)c->out_shape.rows * flops_one(c); }
/* Each entry of the output is a sum over the columns of the first matrix. */
static double flops_product(const ph_call *c) { return 2.0 * (double)c->in_shape[0].cols * flops_one(c); }

#define ACTIVATION(NAME, name_, TAKES, FROM, LIPSCHITZ, BOUND, AT_ZERO, EQUATION, DOC) \
  {.name = #name_,                                                                     \
   .args = #TAKES,                                                                     \
   .word = true,                                                                       \
   .shape = ph_shape_same,                                                             \
   .fwd = ph_op_act,                                                                   \
   .bwd = ph_op_act_bwd,                                                               \
   .need = PH_ACT_FROM_##FROM ? PH_NEED_OUT : PH_NEED_IN0,                             \
   .flops = flops_ten,                                                                 \
   .flops_bwd = 1,                                                                     \
   .gain = PH_GAIN_LIPSCHITZ,                                                          \
   .act = PH_ACT_##NAME,                                                               \
   .lipschitz = LIPSCHITZ,                                                             \
   .output_bound = BOUND,                                                              \
   .at_zero = AT_ZERO,                                                                 \
   .equation = EQUATION,                                                               \
   .doc = DOC},

static const ph_op TABLE[] = {
    {.name = "state",
     .args = "",
     .role = PH_ROLE_STATE,
     .gain = PH_GAIN_STATE,
     .equation = "x_t",
     .doc = "The value a stream carries from step to step."},
    {.name = "input",
     .args = "",
     .role = PH_ROLE_INPUT,
     .gain = PH_GAIN_INPUT,
     .equation = "u_t",
     .doc = "The input of this step of a stream over time."},
    {.name = "skew",
     .args = "q",
     .word = true,
     .shape = ph_shape_same,
     .fwd = ph_op_skew,
     .bwd = ph_op_skew_bwd,
     .scratch = scratch_square,
     .flops = flops_one,
     .flops_bwd = 2,
     .gain = PH_GAIN_SKEW,
     .equation = "S = A - A^T",
     .doc = "Skew part (times two) of a square matrix: the generator of a transport."},
    {.name = "gram",
     .args = "m",
     .word = true,
     .shape = ph_shape_gram,
     .fwd = ph_op_gram,
     .bwd = ph_op_gram_bwd,
     .need = PH_NEED_IN0,
     .scratch = scratch_gram,
     .flops = flops_product,
     .flops_bwd = 1,
     .gain = PH_GAIN_GRAM,
     .equation = "R = L L^T",
     .doc = "Positive semidefinite matrix from a factor."},
    {.name = "guard",
     .args = "m",
     .attr = {{"step", PH_ATTR_POSITIVE}, {"budget", PH_ATTR_POSITIVE}},
     .shape = ph_shape_same,
     .fwd = ph_op_guard,
     .bwd = ph_op_guard_bwd,
     .need = PH_NEED_IN0,
     .scratch = scratch_guard,
     .flops = flops_one,
     .flops_bwd = 1,
     .gain = PH_GAIN_CLIP,
     .equation = "L_eff = min(1, (step lambda_max(L L^T) / budget)^{-1/2}) L",
     .doc = "Budget guard: rescales a damping factor so that step * lambda_max(R) <= budget; leaves it bit for bit "
            "below budget."},
    {.name = "cayley",
     .args = "k",
     .shape = ph_shape_same,
     .fwd = ph_op_cayley,
     .bwd = ph_op_cayley_bwd,
     .need = PH_NEED_OUT,
     .scratch = scratch_inverse,
     .flops = flops_inverse,
     .flops_bwd = 2,
     .gain = PH_GAIN_ORTHOGONAL,
     .equation = "C = 2 (I + S/2)^{-1} - I",
     .doc = "Cayley transport of a skew generator: exactly orthogonal, determinant +1, never the eigenvalue -1."},
    {.name = "damping",
     .args = "p",
     .attr = {{"step", PH_ATTR_POSITIVE}},
     .shape = ph_shape_same,
     .fwd = ph_op_damping,
     .bwd = ph_op_damping_bwd,
     .need = PH_NEED_OUT,
     .scratch = scratch_inverse,
     .flops = flops_inverse,
     .flops_bwd = 2,
     .gain = PH_GAIN_CONTRACTION,
     .equation = "Lambda = 2 (I + step R/2)^{-1} - I",
     .doc = "Metered dissipation of a psd matrix: symmetric, norm at most 1; eigenvalue 1 exactly on the kernel of R."},
    {.name = "matmul",
     .args = "mm",
     .role = PH_ROLE_MATMUL,
     .shape = ph_shape_matmul,
     .fwd = ph_op_matmul,
     .bwd = ph_op_matmul_bwd,
     .need = PH_NEED_IN0 | PH_NEED_IN1,
     .scratch = scratch_second,
     .flops = flops_product,
     .flops_bwd = 2,
     .gain = PH_GAIN_PRODUCT,
     .equation = "M = A B",
     .doc = "Product of two parameter matrices."},
    {.name = "transpose",
     .args = "m",
     .word = true,
     .shape = ph_shape_transpose,
     .fwd = ph_op_transpose,
     .bwd = ph_op_transpose_bwd,
     .scratch = scratch_square,
     .flops_bwd = 1,
     .gain = PH_GAIN_TRANSPOSE,
     .equation = "B = A^T",
     .doc = "Transpose of a parameter matrix."},
    {.name = "scale",
     .args = "x",
     .attr = {{"by", PH_ATTR_REAL}},
     .role = PH_ROLE_SCALE,
     .shape = ph_shape_same,
     .fwd = ph_op_scale,
     .bwd = ph_op_scale_bwd,
     .flops = flops_one,
     .flops_bwd = 1,
     .gain = PH_GAIN_SCALE,
     .equation = "y = by x",
     .doc = "Multiplication by a number."},
    {.name = "add",
     .args = "xx",
     .role = PH_ROLE_ADD,
     .shape = ph_shape_pair,
     .fwd = ph_op_add,
     .bwd = ph_op_add_bwd,
     .flops = flops_one,
     .flops_bwd = 1,
     .gain = PH_GAIN_SUM,
     .equation = "z = x + y",
     .doc = "Sum of two values of the same shape."},
    {.name = "sub",
     .args = "xx",
     .role = PH_ROLE_SUB,
     .shape = ph_shape_pair,
     .fwd = ph_op_sub,
     .bwd = ph_op_sub_bwd,
     .flops = flops_one,
     .flops_bwd = 1,
     .gain = PH_GAIN_DIFFERENCE,
     .equation = "z = x - y",
     .doc = "Difference of two values of the same shape."},
    {.name = "mul",
     .args = "xx",
     .word = true,
     .shape = ph_shape_pair,
     .fwd = ph_op_mul,
     .bwd = ph_op_mul_bwd,
     .need = PH_NEED_IN0 | PH_NEED_IN1,
     .flops = flops_one,
     .flops_bwd = 2,
     .gain = PH_GAIN_SCHUR,
     .equation = "z_i = x_i y_i",
     .doc = "Elementwise product of two values of the same shape."},
    PH_ACTIVATIONS(ACTIVATION) /* their rows: kernels/activations.h */
    {.name = "apply",
     .args = "ms",
     .role = PH_ROLE_APPLY,
     .shape = ph_shape_apply,
     .fwd = ph_op_apply,
     .bwd = ph_op_apply_bwd,
     .need = PH_NEED_IN0 | PH_NEED_IN1,
     .scratch = scratch_first,
     .flops = flops_product,
     .flops_bwd = 2,
     .gain = PH_GAIN_APPLY,
     .equation = "y = M x",
     .doc = "A parameter matrix acting on the features of a state."},
    {.name = "bias",
     .args = "sv",
     .role = PH_ROLE_BIAS,
     .shape = ph_shape_vectors,
     .fwd = ph_op_bias,
     .bwd = ph_op_bias_bwd,
     .flops = flops_one,
     .flops_bwd = 1,
     .gain = PH_GAIN_AFFINE,
     .equation = "y = x + b",
     .doc = "A parameter vector added to a state."},
    {.name = "layernorm",
     .args = "svv",
     .attr = {{"eps", PH_ATTR_POSITIVE}},
     .shape = ph_shape_vectors,
     .fwd = ph_op_layernorm,
     .bwd = ph_op_layernorm_bwd,
     .need = PH_NEED_IN0 | PH_NEED_IN1,
     .aux = aux_two,
     .flops = flops_ten,
     .flops_bwd = 2,
     .gain = PH_GAIN_NORMALIZE,
     .equation = "y = gamma (x - mean x)/sqrt(var x + eps) + beta",
     .doc = "LayerNorm over the features of each state, biased variance."},
};

static ph_shape in_call(ph_shape s, int64_t samples) {
  s.rows = ph_shape_is_param(s) ? s.rows : s.pos * samples;
  return s;
}

ph_call ph_op_call(const ph_op *op, const ph_shape *in, ph_shape out, const double *attr, int64_t samples) {
  ph_call c = {.op = op, .count = 1};
  for (int i = 0; op->args[i]; i++) {
    c.in_shape[i] = in_call(in[i], samples);
  }
  c.out_shape = in_call(out, samples);
  memcpy(c.attr, attr, sizeof c.attr);
  return c;
}

ph_needs ph_op_needs(const ph_call *c) {
  const ph_op *op = c->op;
  return (ph_needs){.scratch = op->scratch ? op->scratch(c) : 0,
                    .aux = op->aux ? op->aux(c) : 0,
                    .flops = op->flops ? op->flops(c) : 0};
}

int ph_op_count(void) { return (int)(sizeof TABLE / sizeof TABLE[0]); }

const ph_op *ph_op_at(int i) { return i >= 0 && i < ph_op_count() ? &TABLE[i] : NULL; }

const ph_op *ph_op_find(const char *name) {
  for (int i = 0; i < ph_op_count(); i++) {
    if (strcmp(TABLE[i].name, name) == 0) {
      return &TABLE[i];
    }
  }
  return NULL;
}

const ph_op *ph_op_of(ph_role role) {
  int i = 0;
  while (TABLE[i].role != role) {
    i++;
  }
  return &TABLE[i];
}

unsigned ph_op_parts(const ph_op *op, const unsigned *arg) {
  switch (op->role) {
  case PH_ROLE_STATE: return PH_PART_CHANNEL;
  case PH_ROLE_SCALE: return arg[0];
  case PH_ROLE_APPLY: return arg[1];
  case PH_ROLE_BIAS: return arg[0] | PH_PART_PORT;
  case PH_ROLE_ADD:
  case PH_ROLE_SUB: return arg[0] | arg[1];
  default: return PH_PART_PORT;
  }
}

const char *ph_gain_name(ph_gain gain) {
  static const char *const names[] = {
#define GAIN(NAME, name) #name,
      PH_GAINS(GAIN)
#undef GAIN
  };
  return names[gain];
}
