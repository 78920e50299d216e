/* program.h - the compiled form of one segment: graph, slots, instructions. Private to core/engine.
 *
 * A segment is compiled once and looped over; nothing here grows with the number of layers or samples.
 *
 *   ph_graph    the segment's nodes after rewriting (graph.h)
 *   ph_code     instructions, and the reverse pass over them (code.h)
 *   ph_program  stream phase: everything that touches samples (lower.c, lower_back.c)
 *   ph_pprog    parameter phase: values that depend on parameters alone (paramprog.c)
 */
#ifndef PH_ENGINE_PROGRAM_H
#define PH_ENGINE_PROGRAM_H

#include "base/text.h"
#include "engine/compile/code.h"

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
  PH_SP_SHARE,   /* the share of one sample in the loss: the cotangent of a term of weight 1 */
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
  ph_code code; /* forward */
  ph_back bwd;
  ph_back entry; /* a first segment that meets the data once or place by place: also the data's cotangent; else empty */
  int state;     /* slot of the state */
  int port;      /* slot of the port terms of the result when probed, -1 */
  int64_t tile;  /* samples of a full tile */
  int64_t record, scratch, cot; /* elements: one iteration's record, scratch, cotangents (one parity) */
  int64_t pack, grad;           /* elements of a layer's pack and gradient */
} ph_program;

typedef struct ph_lower_options {
  int64_t tile, rows;
  bool first, probe;
} ph_lower_options;

/* graph -> slots and instructions. Errors: PH_E_NOMEM. */
ph_status ph_program_build(ph_program *p, const ph_ir_segment *seg, const ph_lower_options *o,
                           ph_err *err) PH_MUST_CHECK;
void ph_program_fini(ph_program *p);

/* slots.c. A slot of its own, columns of another, and every slot's offset; after the last, no slot may change. */
int ph_program_slot(ph_program *p, ph_space space, ph_shape shape);
int ph_program_view(ph_program *p, int base, int64_t col, ph_shape shape);
void ph_program_place(ph_program *p);

/* products.c: weights and products of the graph */
int ph_program_weight(ph_program *p, int node);
void ph_program_products(ph_program *p);
/* The product a node is a member of; -1 when it is none. */
int ph_program_member(const ph_program *p, int node);
/* Terms of the sum rooted at an add node: graph nodes, in order, at most g->n. Returns how many. */
int ph_graph_sum_terms(const ph_graph *g, int root, int *term);
/* True when the node is emitted as part of the sum or product that uses it. */
bool ph_program_absorbed(const ph_program *p, int node);

/* lower_back.c. Emits b->list; with_state, with_input: the cotangents of the state and of the steps' inputs are wanted. */
void ph_program_backward(ph_program *p, ph_back *b, bool with_state, bool with_input);

/* ---- parameter phase ---- */

typedef enum ph_pspace {
  PH_PS_LEAF, /* the parameter itself */
  PH_PS_KEEP, /* kept between steps, for the adjoint */
  PH_PS_PACK, /* where the stream's product reads it */
  PH_PS_TEMP, /* forgotten after the block of layers */
  PH_PS_WGRAD /* cotangents that the stream left */
} ph_pspace;

/* Where a parameter value or its cotangent lives: matrices `step` apart. */
typedef struct ph_pslot {
  ph_pspace space;
  int param;         /* LEAF */
  int64_t off, step; /* KEEP, TEMP: off * (layers of the region) + layer * step; PACK, WGRAD: off + layer * step */
} ph_pslot;

typedef struct ph_pprog {
  const ph_program *stream;
  ph_code code; /* forward; values of graph nodes that are parameter values */
  ph_list bwd;
  int nslots, slot_room;
  ph_pslot *slot;
  int *leaf_cot;      /* slot of the cotangent of each parameter of the segment; -1: no gradient (unused) */
  int64_t keep, temp; /* elements per layer */
  double flops;       /* forward and backward of one layer */
} ph_pprog;

/* Errors: PH_E_NOMEM. */
ph_status ph_pprog_build(ph_pprog *q, const ph_program *stream, ph_err *err) PH_MUST_CHECK;
void ph_pprog_fini(ph_pprog *q);

/* describe.c: the instructions of both phases, a line each, added to *s. */
void ph_program_describe(const ph_program *q, ph_text *s);
void ph_pprog_describe(const ph_pprog *q, ph_text *s);

#endif
