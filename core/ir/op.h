/* op.h - the table of operations: every op is one row, and everything about it comes from that row.
 *
 * Eager evaluation in the REPL, compiled execution, gradient tests, certificates and the reference page read the same
 * table. A value is either a *parameter value* (a matrix: depends on parameters alone, one per layer) or a *sample
 * value* (positions x features for each sample; rows of a tile).
 */
#ifndef PH_IR_OP_H
#define PH_IR_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/tensor.h"
#include "kernels/kern.h"

enum { PH_OP_ARGS = 4, PH_OP_ATTRS = 6 };

/* A parameter value is a matrix rows x cols (a vector is 1 x cols), pos = wide = 0. A sample value has cols features at each of
 * pos positions, rows = 1. Positions lie on one axis (wide = 1) or on two: as in an image, pos / wide lines of `wide` positions. */
typedef struct ph_shape {
  int64_t pos, wide, rows, cols;
} ph_shape;

static inline ph_shape ph_shape_param(int64_t rows, int64_t cols) { return (ph_shape){0, 0, rows, cols}; }
static inline ph_shape ph_shape_sample(int64_t pos, int64_t wide, int64_t cols) {
  return (ph_shape){pos, wide, 1, cols};
}
static inline ph_shape ph_shape_with_cols(ph_shape s, int64_t cols) {
  s.cols = cols;
  return s;
}
static inline bool ph_shape_is_param(ph_shape s) { return s.pos == 0; }
static inline bool ph_shape_equal(ph_shape a, ph_shape b) {
  return a.pos == b.pos && a.wide == b.wide && a.rows == b.rows && a.cols == b.cols;
}

/* One operand of a call: `count` matrices `step` elements apart (parameter values) or one tile with leading dimension ld. */
typedef struct ph_opnd {
  void *p;
  int64_t ld, step;
} ph_opnd;

/* Everything an op's kernel sees. Shapes are those of the call: of a sample value, rows = positions * samples, in the order
 * [position][sample]; samples = rows / pos. */
typedef struct ph_call {
  const struct ph_op *op;
  const ph_kern *k;
  int64_t count; /* parameter values: matrices; else 1 */
  ph_shape in_shape[PH_OP_ARGS];
  ph_shape out_shape;
  double attr[PH_OP_ATTRS];
  ph_opnd in[PH_OP_ARGS];
  ph_opnd out;
  ph_opnd aux;  /* what forward keeps for backward besides inputs and output: op->aux(...) elements a row, no gaps */
  ph_opnd gout; /* backward: cotangent of the output */
  ph_opnd gin[PH_OP_ARGS]; /* backward: p = NULL when not wanted */
  bool acc[PH_OP_ARGS];    /* backward: add to what is there */
  void *scratch;           /* op->scratch(...) elements, whatever they hold */
} ph_call;

enum { PH_NEED_IN0 = 1, PH_NEED_IN1 = 2, PH_NEED_IN2 = 4, PH_NEED_IN3 = 8, PH_NEED_OUT = 16 };

/* What an op takes, a letter for each argument. Beyond the shape a letter says what the op is meant for: the shape rule does not
 * ask whether a k is skew, but a certificate believes the op only then, and tests make arguments that are.
 *
 *   m  a matrix              k  a skew matrix                      v  a parameter vector (1, d)
 *   q  a square matrix       p  a positive semidefinite matrix     s  a sample value
 *   r  a regular matrix
 *   x  a parameter or a sample value      a  the same, its entries above 0 */

/* What numbers an attribute may be. */
typedef enum ph_attr_kind {
  PH_ATTR_REAL,     /* finite */
  PH_ATTR_POSITIVE, /* finite, above 0 */
  PH_ATTR_COUNT,    /* whole, at least 1 */
  PH_ATTR_INDEX     /* whole, at least 0 */
} ph_attr_kind;

typedef struct ph_attr {
  const char *name; /* NULL: none */
  ph_attr_kind kind;
} ph_attr;

/* What the compiler knows an op by; all others are alike to it. A role is that of one row (ph_op_of). */
typedef enum ph_role {
  PH_ROLE_NONE,
  PH_ROLE_STATE, /* leaf: the value a segment carries */
  PH_ROLE_INPUT, /* leaf: what enters in this iteration */
  PH_ROLE_APPLY, /* M x */
  PH_ROLE_BIAS,  /* x + b */
  PH_ROLE_ADD,
  PH_ROLE_SUB,
  PH_ROLE_SCALE,
  PH_ROLE_MATMUL
} ph_role;

/* What a sample value is made of: the carried value, through matrices, factors and sums alone (the state channel), and all
 * that reaches it otherwise (the ports). */
enum { PH_PART_CHANNEL = 1, PH_PART_PORT = 2 };

/* What certificates know of an op's values and norms (lua/ph/certify has one rule for each): GAIN(NAME, name) */
#define PH_GAINS(GAIN)                                                                                     \
  GAIN(NONE, none)               /* nothing */                                                             \
  GAIN(STATE, state)             /* the carried value itself */                                            \
  GAIN(INPUT, input)             /* what enters in this iteration */                                       \
  GAIN(APPLY, apply)             /* linear: the first argument acts on the second */                       \
  GAIN(AFFINE, affine)           /* the second argument, a constant, is added to the first */              \
  GAIN(SCALE, scale)             /* times the attribute `by` */                                            \
  GAIN(SUM, sum)                 /* of two arguments */                                                    \
  GAIN(DIFFERENCE, difference)   /* of two arguments */                                                    \
  GAIN(PRODUCT, product)         /* of two matrices */                                                     \
  GAIN(SCHUR, schur)             /* elementwise product */                                                 \
  GAIN(LIPSCHITZ, lipschitz)     /* elementwise, with `lipschitz`, `output_bound` and `at_zero` */         \
  GAIN(NORMALIZE, normalize)     /* each row to norm sqrt(d), times the second argument, plus the third */ \
  GAIN(SKEW, skew)               /* a skew matrix */                                                       \
  GAIN(GRAM, gram)               /* L L^T */                                                               \
  GAIN(CLIP, clip)               /* norm at most sqrt(budget/step) and that of the argument */             \
  GAIN(ORTHOGONAL, orthogonal)   /* keeps every norm, determinant 1 */                                     \
  GAIN(CONTRACTION, contraction) /* (I - step R/2)(I + step R/2)^{-1} */                                   \
  GAIN(TRANSPOSE, transpose)                                                                               \
  GAIN(IDENTITY, identity) /* the matrix I */                                                              \
  GAIN(DIAGONAL, diagonal) /* diag(v) */                                                                   \
  GAIN(ENTRIES, entries)   /* the diagonal of a matrix */                                                  \
  GAIN(INVERSE, inverse)                                                                                   \
  GAIN(SOLUTION, solution) /* inverse of the first argument times the second */                            \
  GAIN(ROOT, root)         /* L of A = L L^T */                                                            \
  GAIN(JOIN, join)         /* two values side by side */                                                   \
  GAIN(PART, part)         /* features `from` to `to` */                                                   \
  GAIN(STRETCH, stretch)   /* linear: diag(v), v the second argument, acts on the first */                 \
  GAIN(INNER, inner)       /* inner product of two values */                                               \
  GAIN(CHOICE, choice)     /* entry by entry the second or the third argument, as the first one says */    \
  GAIN(SIMPLEX, simplex)   /* rows above 0 with sum 1, slope at most 1/2 */                                \
  GAIN(GATHER, gather)     /* lines x wide positions become one */                                         \
  GAIN(SPREAD, spread)     /* norms of positions do not grow */

typedef enum ph_gain {
#define GAIN(NAME, name) PH_GAIN_##NAME,
  PH_GAINS(GAIN)
#undef GAIN
      PH_GAIN_COUNT
} ph_gain;

typedef struct ph_op {
  const char *name;
  const char *args;          /* a letter an argument */
  ph_attr attr[PH_OP_ATTRS]; /* in canonical order; name NULL after the last */
  ph_role role;
  bool word; /* a spec calls it: ph.NAME(...) */
  /* Output shape of arguments and attributes that are what the row says (ph_op_shape has asked); PH_E_SHAPE or PH_E_ARG with both
   * sides of a mismatch. NULL: a leaf, its segment knows. */
  ph_status (*shape)(const struct ph_op *op, const ph_shape *in, const double *attr, ph_shape *out, ph_err *err);
  void (*fwd)(const ph_call *c); /* NULL: a leaf */
  void (*bwd)(const ph_call *c); /* NULL: nothing depends on an argument */
  unsigned need;                 /* PH_NEED_*: what bwd reads */
  /* What a call takes, from its shapes and attributes; operands are not set. Fewer samples never take more. NULL: nothing. */
  int64_t (*scratch)(const ph_call *c); /* elements, one room for forward and one for backward */
  int64_t (*aux)(const ph_call *c);     /* elements a row of the output that forward keeps for backward */
  double (*flops)(const ph_call *c);    /* forward; backward is counted by `flops_bwd` times this */
  double flops_bwd;
  ph_gain gain;
  ph_act act;          /* PH_GAIN_LIPSCHITZ: the kernel's number of it */
  double lipschitz;    /* PH_GAIN_LIPSCHITZ: the constant */
  double output_bound; /* largest |entry| of the output whatever the input; 0 = none (tanh, sigmoid: 1) */
  double at_zero;      /* PH_GAIN_LIPSCHITZ: an entry of the output where the input is zero */
  const char *
      failure; /* what its value is when finite arguments give one that is not: "an inverse of ..."; NULL: an overflow */
  const char *equation;
  const char *doc;
} ph_op;

int ph_op_count(void);
const ph_op *ph_op_at(int i);
int ph_op_number(const ph_op *op);         /* the i of ph_op_at; of no row the count */
const ph_op *ph_op_find(const char *name); /* NULL if there is none */
const ph_op *ph_op_of(ph_role role);       /* the row of a role; not of PH_ROLE_NONE */
/* Bit i: the op is linear in argument i, in all such arguments together, whatever the others are. */
unsigned ph_op_linear(const ph_op *op);
/* Parts of a sample value, from those of its arguments; a parameter value has none (0). */
unsigned ph_op_parts(const ph_op *op, const unsigned *arg);
static inline int ph_op_nargs(const ph_op *op) { return (int)strlen(op->args); }
const char *ph_gain_name(ph_gain gain);           /* "lipschitz" */
const char *ph_attr_kind_name(ph_attr_kind kind); /* "positive" */

/* Output shape of one sample: attributes and argument kinds are checked, then the row's rule. Errors: PH_E_ARG, PH_E_SHAPE. */
ph_status ph_op_shape(const ph_op *op, const ph_shape *in, const double *attr, ph_shape *out,
                      ph_err *err) PH_MUST_CHECK;

/* A call on `samples` samples, from the shapes of one: op, shapes, attributes and count = 1; no operands. */
ph_call ph_op_call(const ph_op *op, const ph_shape *in, ph_shape out, const double *attr, int64_t samples);

/* What a call takes besides its operands, by the rules of its op's row. */
typedef struct ph_needs {
  int64_t scratch, aux;
  double flops;
} ph_needs;
ph_needs ph_op_needs(const ph_call *c);

/* Runs one op on tensors of one dtype (f32 or f64) with the kernels of compiled code. Parameter values are rank 1 or 2. Sample
 * values (`sample` set) are (n, cols): n samples of one position; (n, pos, cols): positions on one axis; (n, H, W, cols): on two;
 * or of rank 1: one sample of one position. The output has the form of the first sample argument whose positions it keeps.
 * attr: PH_OP_ATTRS numbers. Errors: PH_E_ARG, PH_E_DTYPE, PH_E_SHAPE, PH_E_NOMEM. */
ph_status ph_op_eager(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample, const double *attr,
                      ph_tensor **out, ph_err *err) PH_MUST_CHECK;
/* The adjoint: gin[i] has the form of argument i, gout that of the output. */
ph_status ph_op_eager_bwd(const ph_op *op, int nargs, const ph_tensor *const *in, const bool *sample,
                          const double *attr, const ph_tensor *gout, ph_tensor **gin, ph_err *err) PH_MUST_CHECK;

#endif
