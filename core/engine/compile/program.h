/* program.h - the compiled form of one segment: graph, slots, instructions. Private to core/engine.
 *
 * A segment is compiled once and looped over; nothing here grows with the number of layers or samples.
 *
 *   ph_graph    the segment's nodes after rewriting (graph.c)
 *   ph_program  stream phase: slots and instructions, forward and backward (lower.c, lower_back.c)
 *   ph_pprog    parameter phase: the same for values that depend on parameters alone (paramprog.c)
 */
#ifndef PH_ENGINE_PROGRAM_H
#define PH_ENGINE_PROGRAM_H

#include <string.h>

#include "base/text.h"
#include "ir/ir.h"

/* ---- graph ---- */

typedef struct ph_gnode {
  const ph_op *op; /* NULL: a parameter leaf */
  int param;       /* leaf: index in the segment */
  int nargs, arg[PH_OP_ARGS];
  double attr[PH_OP_ATTRS];
  ph_shape shape;
  int uses; /* by live nodes, result and read */
  int user; /* the last live user, -1 when none or when result/read */
  bool live;
  bool reads_state; /* depends on state (or on this step's input) */
  bool reads_input;
  bool has_param; /* depends on some parameter */
} ph_gnode;

typedef struct ph_graph {
  const ph_ir_segment *seg;
  int n, room;
  ph_gnode *node;
  int state, input; /* input -1 unless driven */
  int result, read; /* read -1 when absent */
} ph_graph;

/* rows: samples of a full batch (times iterations when parameters are tied); decides whether A(Bx) becomes (AB)x. */
ph_status ph_graph_build(ph_graph *g, const ph_ir_segment *seg, int64_t rows, ph_err *err) PH_MUST_CHECK;
void ph_graph_fini(ph_graph *g);
/* The call of a node on `samples` samples, without operands. */
ph_call ph_graph_call(const ph_graph *g, int node, int64_t samples);
static inline ph_role ph_graph_role(const ph_graph *g, int i) {
  return g->node[i].op ? g->node[i].op->role : PH_ROLE_NONE;
}
static inline bool ph_graph_is_param(const ph_graph *g, int i) { return ph_shape_is_param(g->node[i].shape); }

/* ---- stream phase ---- */

typedef enum ph_space {
  PH_SP_TAPE,    /* this iteration's record: the state first, then what backward reads */
  PH_SP_NEXT,    /* the next iteration's record: its state */
  PH_SP_SCRATCH, /* forgotten after the iteration */
  PH_SP_COT,     /* cotangents of this iteration (double-buffered by parity) */
  PH_SP_COTNEXT, /* cotangents handed to the iteration before */
  PH_SP_IN,      /* driven: this iteration's input */
  PH_SP_GIN,     /* its cotangent */
  PH_SP_OUT,     /* with read: what this iteration gives */
  PH_SP_GOUT,    /* its cotangent */
  PH_SP_COUNT
} ph_space;

typedef struct ph_slot {
  ph_space space;
  ph_shape shape;  /* of one sample */
  int base, col;   /* a view of columns of slot `base`; base -1: a slot of its own */
  int mirror;      /* COTNEXT: lies where slot `mirror` lies in COT; -1 otherwise */
  int64_t off, ld; /* resolved: elements from the start of the space for a tile of full size */
} ph_slot;

/* A parameter value the stream reads. Products lay their matrices side by side: rows of one (N,K) matrix. */
typedef struct ph_weight {
  int node; /* graph node (parameter value) */
  int64_t rows, cols;
  int64_t pack; /* generic: offset of the copy in the layer's pack; -1 when a product packs it */
  int64_t grad; /* offset in the layer's gradient */
} ph_weight;

typedef struct ph_product {
  int input; /* graph node x */
  int members;
  int *member;        /* graph nodes: the apply (or the bias that follows it) */
  int *matrix, *bias; /* weights; bias -1 when absent */
  int64_t N, K;
  int64_t wt, wn, wb; /* pack: transposed (K,N), natural (N,K) or -1, bias row (N) or -1 */
  int64_t grad;       /* (N,K) in the layer's gradient */
  int out, cot;       /* slots when members > 1 (the concatenated tile), else -1 */
} ph_product;

typedef enum ph_ins_kind {
  PH_INS_PRODUCT, /* out = d + bias + a Wt */
  PH_INS_OP,      /* out = op(in) */
  PH_INS_AXPBY,   /* out = alpha a + beta b (b may be -1) */
  PH_INS_WGRAD,   /* weight cotangent of a product: (+)= a^T b */
  PH_INS_COLSUM,  /* bias cotangent: (+)= sum of rows of a */
  PH_INS_DGRAD,   /* out = d + a Wn */
  PH_INS_OP_BWD,  /* cotangents of op's arguments */
  PH_INS_ZERO     /* out = 0 */
} ph_ins_kind;

typedef struct ph_ins {
  ph_ins_kind kind;
  const ph_op *op;
  int product, weight; /* PRODUCT, WGRAD, DGRAD; COLSUM */
  int a, b, d, out;    /* slots, -1 when absent */
  double alpha, beta;
  int nargs, in[PH_OP_ARGS]; /* OP: slots, or ~weight for parameter values */
  int aux, gin[PH_OP_ARGS];  /* OP_BWD: slots, ~weight, or PH_NO_SLOT */
  bool acc[PH_OP_ARGS];
  ph_shape in_shape[PH_OP_ARGS], out_shape;
  double attr[PH_OP_ATTRS];
} ph_ins;

enum { PH_NO_SLOT = 1 << 30 };

typedef struct ph_list { /* instructions */
  int n, room;
  ph_ins *ins;
} ph_list;

/* A backward program and where cotangents enter and leave an iteration. */
typedef struct ph_back {
  ph_list list;
  int result_in; /* slot (COT): the cotangent of the result */
  int state_cot; /* slot (COTNEXT): the cotangent of the state; -1 when it is not computed */
} ph_back;

typedef struct ph_program {
  const ph_ir_segment *seg;
  ph_graph graph;
  int nslots, slot_room;
  ph_slot *slot;
  int nproducts, product_room;
  ph_product *product;
  int nweights, weight_room;
  ph_weight *weight;
  ph_list fwd;
  ph_back bwd;
  ph_back entry; /* a first segment that meets the data once or place by place: also the data's cotangent; else empty */
  int *value, *aux;             /* slot of each graph node, of its aux; -1 */
  int state;                    /* slot of the state */
  int port;                     /* slot of the port terms of the result when probed, -1 */
  int64_t tile;                 /* samples of a full tile */
  int64_t record, scratch, cot; /* elements: one iteration's record, scratch, cotangents (one parity) */
  int64_t pack, grad;           /* elements of a layer's pack and gradient */
  int64_t op_scratch;           /* elements of what one op takes at most (ph_call.scratch) */
  bool failed;                  /* out of memory while building */
} ph_program;

typedef struct ph_lower_options {
  int64_t tile, rows;
  bool first, probe;
} ph_lower_options;

/* graph -> slots and instructions. Errors: PH_E_NOMEM. */
ph_status ph_program_build(ph_program *p, const ph_ir_segment *seg, const ph_lower_options *o,
                           ph_err *err) PH_MUST_CHECK;
void ph_program_fini(ph_program *p);

/* slots.c: arrays that grow (p->failed when memory is short), slots, instructions, places */
void *ph_program_room(ph_program *p, void *array, int used, int *room, size_t size);
int64_t ph_program_take(int64_t *total, int64_t n);
int ph_program_slot(ph_program *p, ph_space space, ph_shape shape);
int ph_program_view(ph_program *p, int base, int64_t col, ph_shape shape);
ph_ins *ph_program_emit(ph_program *p, ph_list *list, ph_ins_kind kind);
void ph_program_axpby(ph_program *p, ph_list *list, double alpha, int a, double beta, int b, int out);
/* Gives every slot its offset. */
void ph_program_place(ph_program *p);

/* products.c: weights and products of the graph */
int ph_program_weight(ph_program *p, int node);
void ph_program_products(ph_program *p);
/* The product a node is a member of, and its column there; -1 when it is none. */
int ph_program_member(const ph_program *p, int node, int64_t *col, int *index);
/* Terms of the sum rooted at an add node: graph nodes, in order, at most g->n. Returns how many. */
int ph_graph_sum_terms(const ph_graph *g, int root, int *term);
/* True when the node is emitted as part of the sum or product that uses it. */
bool ph_program_absorbed(const ph_program *p, int node);

/* lower_back.c. Emits b->list; with_state, with_input: the cotangents of the state and of the steps' inputs are wanted. */
void ph_program_backward(ph_program *p, ph_back *b, bool with_state, bool with_input);

/* ---- parameter phase ---- */

typedef enum ph_pspace { PH_PS_LEAF, PH_PS_KEEP, PH_PS_PACK, PH_PS_TEMP, PH_PS_WGRAD, PH_PS_NONE } ph_pspace;

/* Where a parameter value or its cotangent lives: matrices `step` apart. */
typedef struct ph_ploc {
  ph_pspace space;
  int param;         /* LEAF */
  int64_t off, step; /* KEEP, TEMP: off * (layers of the region) + layer * step; PACK, WGRAD: off + layer * step */
} ph_ploc;

typedef struct ph_pins {
  const ph_op *op; /* NULL: out = alpha a + beta b */
  int nargs;
  ph_ploc in[PH_OP_ARGS], out, aux, gout, gin[PH_OP_ARGS];
  bool acc[PH_OP_ARGS];
  ph_shape in_shape[PH_OP_ARGS], out_shape;
  double attr[PH_OP_ATTRS];
} ph_pins;

typedef struct ph_plist {
  int n, room;
  ph_pins *ins;
} ph_plist;

typedef struct ph_pprog {
  const ph_program *stream;
  ph_plist fwd, bwd;
  ph_ploc *value;     /* of each graph node that is a parameter value */
  ph_ploc *aux;       /* of what its op keeps for the adjoint; space NONE: nothing */
  ph_ploc *leaf_cot;  /* of each parameter of the segment; space NONE: no gradient (unused) */
  int64_t keep, temp; /* elements per layer */
  int64_t op_scratch; /* elements of what one op takes at most (ph_call.scratch) */
  double flops;       /* forward and backward of one layer */
  bool failed;
} ph_pprog;

ph_status ph_pprog_build(ph_pprog *q, const ph_program *stream, ph_err *err) PH_MUST_CHECK;
void ph_pprog_fini(ph_pprog *q);

/* describe.c: the instructions of both phases, a line each, added to *s. */
void ph_program_describe(const ph_program *q, ph_text *s);
void ph_pprog_describe(const ph_pprog *q, ph_text *s);

#endif
