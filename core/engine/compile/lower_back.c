/* lower_back.c - stream phase, backward: reverse accumulation over the graph of one iteration (reverse.c).
 *
 * The cotangent of a concatenated product must lie side by side; the alias that flows into it is *pinned* there, so that the
 * state's cotangent is written where the next iteration's product reads it and no tile is copied. Cotangent space is
 * double-buffered: an iteration reads one parity and leaves the state's cotangent in the other.
 */
#include "engine/compile/program.h"

typedef struct back {
  ph_reverse r; /* first: own_slot gets its address */
  ph_program *p;
  ph_back *b;
} back;

static int64_t member_column(const ph_program *p, const ph_product *q, int node) {
  int64_t col = 0;
  for (int m = 0; q->member[m] != node; m++) {
    col += p->weight[q->matrix[m]].rows;
  }
  return col;
}

/* A slot for the cotangent of a node: the state's leaves the iteration, the input's goes to the sequence, a member's is
 * its column of the product's. */
static int own_slot(ph_reverse *r, int node) {
  back *k = (back *)r;
  ph_program *p = k->p;
  ph_shape shape = p->graph.node[node].shape;
  if (node == p->graph.state) {
    int s = ph_program_slot(p, PH_SP_COTNEXT, shape);
    if (!p->code.failed && !p->seg->once) {
      p->slot[s].mirror = k->b->result_in;
    }
    k->b->state_cot = s;
    return s;
  }
  if (node == p->graph.input) {
    return ph_program_slot(p, PH_SP_GIN, shape);
  }
  int i = ph_program_member(p, node);
  if (i >= 0 && p->product[i].members > 1) {
    return ph_program_view(p, p->product[i].cot, member_column(p, &p->product[i], node), shape);
  }
  return ph_program_slot(p, PH_SP_COT, shape);
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

/* Makes the cotangents of all members lie side by side in the product's slot.
 *
 * A member whose cotangent is an alias of a slot that lies nowhere in particular needs no copy: that slot is *pinned*, made a view
 * of the product's columns. Instructions that were emitted before name it and will find it there, because offsets and strides are
 * given to slots only after the last instruction (ph_program_place), and a view of a view never comes up: a pinned slot has a base
 * and is not pinnable again, nor is the product's own. */
static void gather(back *k, const ph_product *q) {
  ph_program *p = k->p;
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->code.failed; m++) {
    const ph_cot *c = &k->r.cot[q->member[m]];
    ph_shape shape = p->graph.node[q->member[m]].shape;
    if (c->kind == PH_COT_ALIAS && pinnable(p, c->slot)) {
      p->slot[c->slot].base = q->cot;
      p->slot[c->slot].col = (int)col;
    } else {
      ph_reverse_settle(&k->r, q->member[m]);
    }
    col += shape.cols;
  }
}

static void emit(back *k, const ph_ins *i) { ph_code_emit(&k->p->code, &k->b->list, i); }

static void product_colsums(back *k, const ph_product *q, int g) {
  ph_program *p = k->p;
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->code.failed; m++) {
    ph_shape shape = p->graph.node[q->member[m]].shape;
    if (q->bias[m] >= 0) {
      ph_ins i = ph_ins_of(PH_INS_COLSUM);
      i.weight[0] = q->bias[m];
      i.a = q->members > 1 ? ph_program_view(p, g, col, shape) : g;
      i.out_shape = shape;
      emit(k, &i);
    }
    col += shape.cols;
  }
}

static void product_input(back *k, int product, int g) {
  int x = k->p->product[product].input;
  if (ph_reverse_wanted(&k->r, x)) {
    ph_ins i = ph_ins_of(PH_INS_DGRAD);
    i.product = product;
    i.a = g;
    i.out = ph_reverse_claim(&k->r, x, &i.d);
    emit(k, &i);
  }
}

static void product_back(back *k, int product) {
  const ph_product *q = &k->p->product[product];
  if (q->members > 1) {
    gather(k, q);
  } else if (k->r.cot[q->member[0]].kind == PH_COT_NOTHING) {
    return;
  }
  ph_ins i = ph_ins_of(PH_INS_WGRAD);
  i.product = product;
  i.a = q->members > 1 ? q->cot : k->r.cot[q->member[0]].slot;
  i.b = k->p->code.value[q->input];
  emit(k, &i);
  product_colsums(k, q, i.a);
  product_input(k, product, i.a);
}

/* ---- nodes ---- */

static int first_member(const ph_product *q) {
  int first = q->member[0];
  for (int m = 1; m < q->members; m++) {
    first = q->member[m] < first ? q->member[m] : first;
  }
  return first;
}

static void node_back(back *k, int node) {
  const ph_graph *g = &k->p->graph;
  const ph_gnode *n = &g->node[node];
  const ph_cot *c = &k->r.cot[node];
  int product = ph_program_member(k->p, node);
  if (product >= 0) {
    if (node ==
        first_member(&k->p->product[product])) { /* last in reverse order: every member's cotangent is complete */
      product_back(k, product);
    }
  } else if (c->kind == PH_COT_NOTHING || node == g->state || node == g->input) {
    return;
  } else if (ph_graph_role(g, node) == PH_ROLE_ADD) {
    ph_reverse_give(&k->r, n->arg[0], ph_coef_of(1.0), c->slot);
    ph_reverse_give(&k->r, n->arg[1], ph_coef_of(1.0), c->slot);
  } else if (ph_graph_role(g, node) == PH_ROLE_SCALE) {
    ph_reverse_give(&k->r, n->arg[0], n->attr[0], c->slot);
  } else {
    ph_reverse_op(&k->r, node);
  }
}

static void make_cotangent_slots(ph_program *p) {
  for (int i = 0; i < p->nproducts && !p->code.failed; i++) {
    ph_product *q = &p->product[i];
    if (q->members > 1 && q->cot < 0) {
      ph_shape s = p->graph.node[q->input].shape;
      s.cols = q->N;
      q->cot = ph_program_slot(p, PH_SP_COT, s);
    }
  }
}

/* What the result, the read-out and the terms of the loss hand to the iteration. */
static void enter(back *k) {
  ph_program *p = k->p;
  const ph_graph *g = &p->graph;
  k->b->result_in = ph_program_slot(p, PH_SP_COT, g->node[g->result].shape);
  ph_reverse_give(&k->r, g->result, ph_coef_of(1.0), k->b->result_in);
  if (g->read >= 0) {
    ph_reverse_give(&k->r, g->read, ph_coef_of(1.0), ph_program_slot(p, PH_SP_GOUT, g->node[g->read].shape));
  }
  for (int i = 0; i < p->seg->nterms && !p->code.failed; i++) {
    int share = ph_program_slot(p, PH_SP_SHARE, g->node[g->term[i]].shape);
    ph_reverse_give(&k->r, g->term[i], ph_coef_of(p->seg->term[i].weight), share);
  }
}

void ph_program_backward(ph_program *p, ph_back *b, bool with_state, bool with_input) {
  const ph_graph *g = &p->graph;
  back k = {.p = p, .b = b};
  k.r = (ph_reverse){
      .code = &p->code, .list = &b->list, .with_state = with_state, .with_input = with_input, .own = own_slot};
  ph_reverse_init(&k.r);
  b->state_cot = -1;
  if (!p->code.failed) {
    make_cotangent_slots(p);
    enter(&k);
  }
  for (int i = g->n - 1; i >= 0 && !p->code.failed; i--) {
    if (g->node[i].live && !ph_graph_is_param(g, i) && ph_reverse_wanted(&k.r, i)) {
      node_back(&k, i);
    }
  }
  /* These leave the iteration even when nothing computed them in place. */
  if (!p->code.failed && with_state) {
    ph_reverse_settle(&k.r, g->state);
  }
  if (!p->code.failed && with_input && g->input >= 0) {
    ph_reverse_settle(&k.r, g->input);
  }
  ph_reverse_fini(&k.r);
}
