/* graph.h - a segment's nodes after rewriting. Private to core/engine. */
#ifndef PH_ENGINE_GRAPH_H
#define PH_ENGINE_GRAPH_H

#include <string.h>

#include "ir/ir.h"

/* A number, or one for each iteration. */
typedef struct ph_coef {
  double value;
  const double *table; /* of the segment's; NULL: the value */
} ph_coef;

static inline ph_coef ph_coef_of(double value) { return (ph_coef){value, NULL}; }
static inline double ph_coef_at(ph_coef c, int64_t t) { return c.table ? c.table[t] : c.value; }
/* Do some of an op's attributes differ from iteration to iteration? */
bool ph_coefs_vary(const ph_coef attr[PH_OP_ATTRS]);
void ph_coefs_at(const ph_coef attr[PH_OP_ATTRS], int64_t t, double out[PH_OP_ATTRS]);

typedef struct ph_gnode {
  const ph_op *op; /* NULL: a parameter leaf */
  int param;       /* leaf: index in the segment */
  int nargs, arg[PH_OP_ARGS];
  ph_coef attr[PH_OP_ATTRS];
  ph_shape shape;
  unsigned parts; /* PH_PART_*; 0: a parameter value */
  int uses;       /* by live nodes and as what leaves the iteration: result, read, terms, observations */
  int user;       /* the last live user, -1 when there is none */
  bool live;
  bool reads_state; /* depends on state (or on this step's input) */
  bool reads_input;
  bool has_param; /* depends on some parameter */
} ph_gnode;

typedef struct ph_graph {
  const ph_ir_segment *seg;
  int n, room;
  ph_gnode *node;
  int state, input;    /* input -1 unless driven */
  int result, read;    /* read -1 when absent */
  int *term, *observe; /* as many as the segment has */
} ph_graph;

/* rows: samples of a full batch (times iterations when parameters are tied); decides whether A(Bx) becomes (AB)x.
 * apart: the result is a sum whose terms are each of one part, channel or port, if it has both. */
ph_status ph_graph_build(ph_graph *g, const ph_ir_segment *seg, int64_t rows, bool apart, ph_err *err) PH_MUST_CHECK;
void ph_graph_fini(ph_graph *g);
/* The call of a node on `samples` samples, without operands. */
ph_call ph_graph_call(const ph_graph *g, int node, int64_t samples);
static inline ph_role ph_graph_role(const ph_graph *g, int i) {
  return g->node[i].op ? g->node[i].op->role : PH_ROLE_NONE;
}
/* An add whose terms are terms of the add that alone uses it. */
bool ph_graph_is_inner_add(const ph_graph *g, int i);
static inline bool ph_graph_is_param(const ph_graph *g, int i) { return ph_shape_is_param(g->node[i].shape); }

#endif
