/* ir.h - the canonical text of a model: the one string that crosses from Lua to C.
 *
 * Grammar (one statement a line, single spaces, no comments, no trailing blanks, last line ends with a newline;
 * numbers in the shortest decimal form that reads back as the same double):
 *
 *   phrun-ir 2
 *   dtype f32
 *   input SHAPE                            of one sample. SHAPE: POS FEAT, positions on one axis, or H W FEAT, on two
 *   segment NAME                           a stage: runs once and may change the shape
 *   segment NAME repeat N [tied] [driven] [from zero SHAPE]
 *                                          a stream: a state through N iterations, each of which keeps its shape
 *   param NAME ROWS COLS INIT [NUMBER]     INIT: zeros | ones | constant C | normal SIGMA | uniform HALFWIDTH
 *   table NAME C0 C1 ...                   a constant for each iteration
 *   node N OP [ATTR=NUMBER|ATTR=@TABLE ...] [ARG ...]
 *                                          N counts from 0 in the segment; ARG: pK (param K) or nK (earlier node K)
 *   result nK                              the next state (stream) or what goes on (stage)
 *   read nK                                stream, optional: what goes on of each iteration, in place of the last state
 *   term WEIGHT nK                         adds WEIGHT times node K, one number a sample, to the loss at each iteration
 *   observe NAME nK                        names node K, one number a sample, so that it can be measured at each iteration
 *   end
 *   table NAME C0 C1 ...                   a list for the loss: a number for each feature of the output
 *   loss NAME [ATTR=NUMBER|ATTR=@TABLE ...]
 *                                          a row of loss.h; an attribute that has its initial value is left out
 *
 * The properties of a stream are independent, every combination is legal:
 *
 *   tied         one set of parameters for all iterations; without it each has its own
 *   driven       iteration t also takes an input, place t of what enters: its t-th position, or of two axes its t-th line
 *   from zero    the state starts at zero and has SHAPE; without it the state starts as what enters or, driven, as place 0
 *                of what enters, and the inputs are the places after it: N + 1 places enter
 *
 * Nodes `state` (the carried value) and `input` (driven: this iteration's input) take no arguments. In a tied stream a
 * table may scale states only: a parameter value is the same at every iteration.
 *
 * Parameter A of segment s1 is called s1.A. Segments of one name share the parameters that both declare, with the same
 * shape and initial value; they must have the same number of parameter sets (N when own, else 1).
 *
 * Version 1 can say less and is written whenever it can say a model, so that a model has one text: positions on one axis,
 * segments named s1, s2 ... in order, no tables, terms and observations, a loss without attributes, and three kinds of segment,
 *
 *   segment once 1                         = segment sK
 *   segment depth N                        = segment sK repeat N
 *   segment time N, then width D           = segment sK repeat N tied driven from zero 1 D; the only one that may have `read`
 *
 * print(parse(s)) == s for every s that parses.
 */
#ifndef PH_IR_IR_H
#define PH_IR_IR_H

#include <stddef.h>
#include <stdint.h>

#include "ir/loss.h"
#include "ir/op.h"

enum {
  PH_IR_ARGS = 4,
  PH_IR_NAME = 32,
  PH_IR_MAX_REPEAT = 1 << 20,
  PH_IR_MAX_POS = 1 << 20,
  PH_IR_MAX_NUMBERS = 1 << 26, /* of one parameter matrix */
  PH_IR_MAX_NODES = 4096,
  PH_IR_MAX_PARAMS = 1024,
  PH_IR_MAX_TABLES = 1024,
  PH_IR_MAX_MARKS = 256, /* terms of a segment, and observations */
  PH_IR_MAX_SEGMENTS = 256
};

typedef enum ph_init {
  PH_INIT_ZEROS,
  PH_INIT_ONES,
  PH_INIT_CONSTANT,
  PH_INIT_NORMAL,
  PH_INIT_UNIFORM,
  PH_INIT_COUNT
} ph_init;

const char *ph_init_name(ph_init init);
/* Does a number follow the name? */
bool ph_init_scaled(ph_init init);

typedef struct ph_ir_param {
  char name[PH_IR_NAME];
  int rows, cols;
  ph_init init;
  double scale;
} ph_ir_param;

typedef struct ph_ir_table {
  char name[PH_IR_NAME];
  int64_t n;
  double *value;
} ph_ir_table;

typedef struct ph_ir_tables {
  int n;
  ph_ir_table *at;
} ph_ir_tables;

/* A reference: parameter (index >= 0, is_param) or node. */
typedef struct ph_ir_ref {
  int index;
  bool is_param;
} ph_ir_ref;

typedef struct ph_ir_node {
  const ph_op *op;
  int nargs;
  ph_ir_ref arg[PH_IR_ARGS];
  double attr[PH_OP_ATTRS]; /* where a table gives it: of iteration 0 */
  int table[PH_OP_ATTRS];   /* number of the table that gives it, -1 for a plain number */
  ph_shape shape;           /* filled by the shape rule */
  unsigned parts;           /* PH_PART_*; 0: a parameter value */
} ph_ir_node;

typedef struct ph_ir_term {
  double weight;
  int node;
} ph_ir_term;

typedef struct ph_ir_observe {
  char name[PH_IR_NAME];
  int node;
} ph_ir_observe;

typedef struct ph_ir_segment {
  char name[PH_IR_NAME];
  bool once; /* a stage; then repeat = 1 and tied, driven, from_zero are false */
  int64_t repeat;
  bool tied, driven, from_zero;
  ph_ir_tables tables;
  int nparams, nnodes, nterms, nobserves;
  ph_ir_param *param;
  ph_ir_node *node;
  ph_ir_term *term;
  ph_ir_observe *observe;
  int result, read; /* read = -1 when absent */
  ph_shape in, input, state,
      out; /* of one sample: what enters, of it an iteration's input, what is carried, what leaves */
} ph_ir_segment;

typedef struct ph_ir {
  ph_dtype dtype;
  ph_shape input, output;
  int nsegments;
  ph_ir_segment *segment;
  ph_ir_tables tables; /* of the loss */
  const ph_loss *loss;
  double loss_attr[PH_LOSS_ATTRS];
  int loss_table[PH_LOSS_ATTRS]; /* -1 unless a list is given */
} ph_ir;

/* Errors: PH_E_PARSE and PH_E_SHAPE with "line N: ..." ; PH_E_LIMIT; PH_E_NOMEM. Any bytes are safe to give. */
ph_status ph_ir_parse(ph_ir **out, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
/* The same for text that need not be canonical: of either version, numbers and blanks in any form. */
ph_status ph_ir_read(ph_ir **out, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
void ph_ir_free(ph_ir *ir);
/* Texts read or refused since the start of the process, so that a test can state that none is read twice. */
int64_t ph_ir_texts(void);
/* *text owned by the caller (ph_mem_free). */
ph_status ph_ir_print(const ph_ir *ir, char **text, size_t *n, ph_err *err) PH_MUST_CHECK;

/* Is there something to make small: a loss, or a term? */
bool ph_ir_has_loss(const ph_ir *ir);

/* Of positions on one axis one position, of two axes one line: what a driven stream takes at an iteration. */
static inline ph_shape ph_shape_place(ph_shape s) { return ph_shape_sample(s.wide, 1, s.cols); }
static inline int64_t ph_shape_places(ph_shape s) { return s.pos / s.wide; }

/* Attributes at iteration t: attr[a] from table[a] where that is >= 0. */
static inline void ph_ir_attrs(const ph_ir_segment *s, double *attr, const int *table, int64_t t) {
  for (int a = 0; a < PH_OP_ATTRS; a++) {
    attr[a] = table[a] >= 0 ? s->tables.at[table[a]].value[t] : attr[a];
  }
}

/* Sets of parameters that a segment has. */
static inline int64_t ph_ir_sets(const ph_ir_segment *s) { return s->tied ? 1 : s->repeat; }

#endif
