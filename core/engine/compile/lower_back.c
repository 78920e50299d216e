/* lower_back.c - stream phase, backward: reverse accumulation over the graph of one iteration.
 *
 * Each node's cotangent is nothing yet, an alias of another cotangent (a sum hands its own to its terms unchanged), or a
 * slot of its own. The cotangent of a concatenated product must lie side by side; the alias that flows into it is
 * *pinned* there, so that the state's cotangent is written where the next iteration's product reads it and no tile is
 * copied. Cotangent space is double-buffered: an iteration reads one parity and leaves the state's cotangent in the other.
 */
#include "base/mem.h"
#include "engine/compile/program.h"

typedef enum cot_kind { NOTHING, ALIAS, OWN } cot_kind;

typedef struct cot {
  cot_kind kind;
  int slot;
} cot;

typedef struct back {
  ph_program *p;
  ph_back *b;
  cot *cot;
  bool with_state, with_input; /* their cotangents are wanted */
} back;

static bool wanted(const back *k, int node) {
  const ph_gnode *n = &k->p->graph.node[node];
  return n->has_param || (n->reads_state && k->with_state) || (n->reads_input && k->with_input);
}

/* A slot for the cotangent of a node: the state's leaves the iteration, the input's goes to the sequence, a member's is
 * its column of the product's. */
static int own_slot(back *k, int node) {
  ph_program *p = k->p;
  ph_shape shape = p->graph.node[node].shape;
  if (node == p->graph.state) {
    int s = ph_program_slot(p, PH_SP_COTNEXT, shape);
    if (!p->failed && !p->seg->once) {
      p->slot[s].mirror = k->b->result_in;
    }
    k->b->state_cot = s;
    return s;
  }
  if (node == p->graph.input) {
    return ph_program_slot(p, PH_SP_GIN, shape);
  }
  int64_t col = 0;
  int index = 0;
  int i = ph_program_member(p, node, &col, &index);
  if (i >= 0 && p->product[i].members > 1) {
    return ph_program_view(p, p->product[i].cot, col, shape);
  }
  return ph_program_slot(p, PH_SP_COT, shape);
}

static void give(back *k, int node, double alpha, int slot) {
  cot *c = &k->cot[node];
  if (!wanted(k, node)) {
    return;
  }
  if (c->kind == NOTHING && alpha == 1.0) {
    *c = (cot){ALIAS, slot};
    return;
  }
  int have = c->kind == NOTHING ? -1 : c->slot;
  int out = c->kind == OWN ? c->slot : own_slot(k, node);
  ph_program_axpby(k->p, &k->b->list, alpha, slot, 1.0, have, out);
  *c = (cot){OWN, out};
}

/* Where an op's backward writes the cotangent of `node`, and whether it adds. */
static int target(back *k, int node, bool *acc) {
  cot *c = &k->cot[node];
  *acc = c->kind != NOTHING;
  if (c->kind != OWN) {
    int out = own_slot(k, node);
    if (c->kind == ALIAS) {
      ph_program_axpby(k->p, &k->b->list, 1.0, c->slot, 0.0, -1, out);
    }
    *c = (cot){OWN, out};
  }
  return c->slot;
}

/* ---- products ---- */

static bool pinnable(const ph_program *p, int slot) {
  const ph_slot *s = &p->slot[slot];
  if (s->space != PH_SP_COT || s->base >= 0 || s->mirror >= 0) {
    return false;
  }
  for (int i = 0; i < p->nproducts; i++) {
    if (p->product[i].cot == slot) {
      return false;
    }
  }
  return true;
}

/* Makes the cotangents of all members lie in the product's concatenated slot. */
static void gather(back *k, ph_product *q) {
  ph_program *p = k->p;
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->failed; m++) {
    int node = q->member[m];
    ph_shape shape = p->graph.node[node].shape;
    cot *c = &k->cot[node];
    if (c->kind == ALIAS && pinnable(p, c->slot)) {
      p->slot[c->slot].base = q->cot;
      p->slot[c->slot].col = (int)col;
    } else if (c->kind == ALIAS) {
      int view = ph_program_view(p, q->cot, col, shape);
      ph_program_axpby(p, &k->b->list, 1.0, c->slot, 0.0, -1, view);
    } else if (c->kind == NOTHING) {
      ph_program_emit(p, &k->b->list, PH_INS_ZERO)->out = ph_program_view(p, q->cot, col, shape);
    }
    col += shape.cols;
  }
}

static void product_colsums(back *k, const ph_product *q, int g) {
  ph_program *p = k->p;
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->failed; m++) {
    ph_shape shape = p->graph.node[q->member[m]].shape;
    if (q->bias[m] >= 0) {
      ph_ins *i = ph_program_emit(p, &k->b->list, PH_INS_COLSUM);
      i->weight = q->bias[m];
      i->a = q->members > 1 ? ph_program_view(p, g, col, shape) : g;
      i->out_shape = shape;
    }
    col += shape.cols;
  }
}

static void product_input(back *k, int index, int g) {
  ph_program *p = k->p;
  int x = p->product[index].input;
  if (!wanted(k, x)) {
    return;
  }
  cot *c = &k->cot[x];
  int d = c->kind == NOTHING ? -1 : c->slot;
  int out = c->kind == OWN ? c->slot : own_slot(k, x);
  ph_ins *i = ph_program_emit(p, &k->b->list, PH_INS_DGRAD);
  i->product = index;
  i->a = g;
  i->d = d;
  i->out = out;
  *c = (cot){OWN, out};
}

static void product_back(back *k, int index) {
  ph_program *p = k->p;
  ph_product *q = &p->product[index];
  int g = q->members > 1 ? q->cot : k->cot[q->member[0]].slot;
  if (q->members > 1) {
    gather(k, q);
  } else if (k->cot[q->member[0]].kind == NOTHING) {
    return;
  }
  ph_ins *i = ph_program_emit(p, &k->b->list, PH_INS_WGRAD);
  i->product = index;
  i->a = g;
  i->b = p->value[q->input];
  product_colsums(k, q, g);
  product_input(k, index, g);
}

/* ---- nodes ---- */

static int first_member(const ph_product *q) {
  int first = q->member[0];
  for (int m = 1; m < q->members; m++) {
    first = q->member[m] < first ? q->member[m] : first;
  }
  return first;
}

static void op_back(back *k, int node) {
  ph_program *p = k->p;
  const ph_gnode *n = &p->graph.node[node];
  int gin[PH_OP_ARGS] = {0};
  bool acc[PH_OP_ARGS] = {0};
  const ph_ins *f = p->fwd.ins;
  while (f->kind != PH_INS_OP || f->out != p->value[node]) {
    f++;
  }
  ph_ins forward = *f;
  for (int a = 0; a < n->nargs; a++) {
    gin[a] = PH_NO_SLOT;
    if (ph_graph_is_param(&p->graph, n->arg[a])) {
      gin[a] = forward.in[a]; /* ~weight */
    } else if (wanted(k, n->arg[a])) {
      gin[a] = target(k, n->arg[a], &acc[a]);
    }
  }
  int g = k->cot[node].slot;
  ph_ins *i = ph_program_emit(p, &k->b->list, PH_INS_OP_BWD);
  forward.kind = PH_INS_OP_BWD;
  *i = forward;
  i->a = g;
  memcpy(i->gin, gin, sizeof gin);
  memcpy(i->acc, acc, sizeof acc);
}

static void node_back(back *k, int i) {
  ph_program *p = k->p;
  ph_graph *g = &p->graph;
  int64_t col = 0;
  int index = 0;
  int product = ph_program_member(p, i, &col, &index);
  if (product >= 0) {
    if (i == first_member(&p->product[product])) { /* last in reverse order: every member's cotangent is complete */
      product_back(k, product);
    }
    return;
  }
  if (k->cot[i].kind == NOTHING || i == g->state || i == g->input) {
    return;
  }
  if (ph_graph_role(g, i) == PH_ROLE_ADD) {
    give(k, g->node[i].arg[0], 1.0, k->cot[i].slot);
    give(k, g->node[i].arg[1], 1.0, k->cot[i].slot);
  } else if (ph_graph_role(g, i) == PH_ROLE_SCALE) {
    give(k, g->node[i].arg[0], g->node[i].attr[0], k->cot[i].slot);
  } else if (g->node[i].op->bwd) {
    op_back(k, i);
  }
}

/* The cotangent of the state (or of this step's input) must leave the iteration even when nothing computed it in place. */
static void leave(back *k, int node) {
  ph_program *p = k->p;
  cot *c = &k->cot[node];
  if (c->kind == OWN || p->failed) {
    return;
  }
  int out = own_slot(k, node);
  if (c->kind == ALIAS) {
    ph_program_axpby(p, &k->b->list, 1.0, c->slot, 0.0, -1, out);
  } else {
    ph_program_emit(p, &k->b->list, PH_INS_ZERO)->out = out;
  }
}

static void make_cotangent_slots(ph_program *p) {
  for (int i = 0; i < p->nproducts && !p->failed; i++) {
    ph_product *q = &p->product[i];
    if (q->members > 1 && q->cot < 0) {
      ph_shape s = p->graph.node[q->input].shape;
      s.cols = q->N;
      q->cot = ph_program_slot(p, PH_SP_COT, s);
    }
  }
}

void ph_program_backward(ph_program *p, ph_back *b, bool with_state, bool with_input) {
  ph_graph *g = &p->graph;
  back k = {.p = p, .b = b, .with_state = with_state, .with_input = with_input};
  k.cot = ph_mem_new((size_t)g->n, sizeof *k.cot);
  p->failed |= !k.cot;
  b->state_cot = -1;
  if (p->failed) {
    ph_mem_free(k.cot);
    return;
  }
  make_cotangent_slots(p);
  b->result_in = ph_program_slot(p, PH_SP_COT, g->node[g->result].shape);
  give(&k, g->result, 1.0, b->result_in);
  if (g->read >= 0) {
    give(&k, g->read, 1.0, ph_program_slot(p, PH_SP_GOUT, g->node[g->read].shape));
  }
  for (int i = g->n - 1; i >= 0 && !p->failed; i--) {
    if (g->node[i].live && !ph_graph_is_param(g, i) && wanted(&k, i)) {
      node_back(&k, i);
    }
  }
  if (with_state) {
    leave(&k, g->state);
  }
  if (with_input && g->input >= 0) {
    leave(&k, g->input);
  }
  ph_mem_free(k.cot);
}
