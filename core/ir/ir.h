/* ir.h - the canonical text of a model: the one string that crosses from Lua to C.
 *
 * Grammar (one statement a line, single spaces, no comments, no trailing blanks, last line ends with a newline;
 * numbers in the shortest decimal form that reads back as the same double):
 *
 *   phrun-ir 1
 *   dtype f32
 *   input POS FEAT                         positions and features of one sample
 *   segment once|depth|time REPEAT         once: REPEAT = 1. depth: own parameters per layer. time: one set, an input per step
 *   param NAME ROWS COLS INIT [NUMBER]     INIT: zeros | ones | constant C | normal SIGMA | uniform HALFWIDTH
 *   node N OP [ATTR=NUMBER ...] [ARG ...]  N counts from 0 in the segment; ARG: pK (param K) or nK (earlier node K)
 *   result nK                              the next state (depth, time) or the output (once)
 *   read nK                                time only, optional: the output of each step; without it the output is the last state
 *   end
 *   loss softmax_cross_entropy|mse|none
 *
 * Nodes `state` (the carried value) and `input` (time: this step's input) take no arguments; time also has
 * `width D` after its segment line, the width of the state, which starts at zero.
 * print(parse(s)) == s for every s that parses.
 */
#ifndef PH_IR_IR_H
#define PH_IR_IR_H

#include <stddef.h>
#include <stdint.h>

#include "ir/op.h"

enum { PH_IR_ARGS = 4, PH_IR_NAME = 32, PH_IR_MAX_NODES = 4096, PH_IR_MAX_PARAMS = 1024, PH_IR_MAX_SEGMENTS = 256 };

typedef enum ph_seg_kind { PH_SEG_ONCE, PH_SEG_DEPTH, PH_SEG_TIME } ph_seg_kind;
typedef enum ph_init { PH_INIT_ZEROS, PH_INIT_ONES, PH_INIT_CONSTANT, PH_INIT_NORMAL, PH_INIT_UNIFORM } ph_init;
typedef enum ph_loss { PH_LOSS_NONE, PH_LOSS_SOFTMAX_CE, PH_LOSS_MSE } ph_loss;

typedef struct ph_ir_param {
  char name[PH_IR_NAME];
  int rows, cols;
  ph_init init;
  double scale;
} ph_ir_param;

/* A reference: parameter (index >= 0, is_param) or node. */
typedef struct ph_ir_ref {
  int index;
  bool is_param;
} ph_ir_ref;

typedef struct ph_ir_node {
  const ph_op *op;
  int nargs;
  ph_ir_ref arg[PH_IR_ARGS];
  double attr[PH_OP_ATTRS];
  ph_shape shape; /* filled by the shape rule */
} ph_ir_node;

typedef struct ph_ir_segment {
  ph_seg_kind kind;
  int64_t repeat;
  int width; /* time: width of the state */
  int nparams, nnodes;
  ph_ir_param *param;
  ph_ir_node *node;
  int result, read;        /* read = -1 when absent */
  ph_shape in, state, out; /* of one sample: what enters, what is carried, what leaves */
} ph_ir_segment;

typedef struct ph_ir {
  ph_dtype dtype;
  ph_shape input, output;
  int nsegments;
  ph_ir_segment *segment;
  ph_loss loss;
} ph_ir;

/* Errors: PH_E_PARSE and PH_E_SHAPE with "line N: ..." ; PH_E_LIMIT; PH_E_NOMEM. Any bytes are safe to give. */
ph_status ph_ir_parse(ph_ir **out, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
void ph_ir_free(ph_ir *ir);
/* *text owned by the caller (ph_mem_free). */
ph_status ph_ir_print(const ph_ir *ir, char **text, size_t *n, ph_err *err) PH_MUST_CHECK;

#endif
