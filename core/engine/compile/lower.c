/* lower.c - stream phase, forward: graph nodes to slots and instructions.
 *
 * Matrices that act on the same state become one product [M; W] x with one concatenated tile; a bias that follows a
 * matrix starts the accumulators; a product that is a term of a sum accumulates into the sum. What backward will read
 * lies in the tape, everything else in scratch.
 */
#include "base/mem.h"
#include "engine/compile/program.h"

/* ---- what backward reads ---- */

static void mark_saved(const ph_program *p, bool *saved) {
  const ph_graph *g = &p->graph;
  for (int i = 0; i < p->nproducts; i++) {
    saved[p->product[i].input] = true;
  }
  for (int i = 0; i < g->n; i++) {
    const ph_gnode *n = &g->node[i];
    if (!n->live || ph_graph_is_param(g, i) || !n->op || ph_graph_role(g, i) == PH_ROLE_APPLY) {
      continue;
    }
    for (int a = 0; a < n->nargs; a++) {
      saved[n->arg[a]] |= (n->op->need & (1U << a)) != 0;
    }
    saved[i] |= (n->op->need & PH_NEED_OUT) != 0;
  }
}

static ph_space home(const ph_program *p, int node, const bool *saved) {
  if (node == p->graph.result) {
    return PH_SP_NEXT;
  }
  return saved[node] ? PH_SP_TAPE : PH_SP_SCRATCH;
}

/* ---- forward ---- */

static void place_concatenated(ph_program *p, ph_product *q, const bool *saved) {
  bool keep = false;
  for (int m = 0; m < q->members; m++) {
    keep |= saved[q->member[m]];
  }
  ph_shape s = p->graph.node[q->input].shape;
  s.cols = q->N;
  q->out = ph_program_slot(p, keep ? PH_SP_TAPE : PH_SP_SCRATCH, s);
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->failed; m++) {
    ph_shape view = p->graph.node[q->member[m]].shape;
    p->value[q->member[m]] = ph_program_view(p, q->out, col, view);
    col += view.cols;
  }
}

static void emit_product(ph_program *p, int i, int d, int out) {
  ph_ins *ins = ph_program_emit(p, &p->fwd, PH_INS_PRODUCT);
  ins->product = i;
  ins->a = p->value[p->product[i].input];
  ins->d = d;
  ins->out = out;
}

static void lower_member(ph_program *p, int node, const bool *saved) {
  int64_t col = 0;
  int index = 0;
  int i = ph_program_member(p, node, &col, &index);
  if (i < 0 || p->failed) {
    return; /* an apply whose bias ends the member */
  }
  ph_product *q = &p->product[i];
  if (q->members == 1) {
    p->value[node] = ph_program_slot(p, home(p, node, saved), p->graph.node[node].shape);
    emit_product(p, i, -1, p->value[node]);
  } else if (q->out < 0) {
    place_concatenated(p, q, saved);
    emit_product(p, i, -1, q->out);
  }
}

/* A term that reaches the state only through matrices and factors: the state channel; everything else is port. */
static bool state_channel(const ph_graph *g, int i) {
  if (i == g->state) {
    return true;
  }
  if (ph_graph_role(g, i) == PH_ROLE_SCALE) {
    return state_channel(g, g->node[i].arg[0]);
  }
  return ph_graph_role(g, i) == PH_ROLE_APPLY && state_channel(g, g->node[i].arg[1]);
}

/* out = sum of terms: values first (the first starts the accumulators), then products that accumulate. */
static void emit_sum(ph_program *p, const int *term, int n, int out) {
  int start = -1; /* what the next product adds to */
  for (int i = 0; i < n; i++) {
    if (ph_program_absorbed(p, term[i])) {
      continue;
    }
    int v = p->value[term[i]];
    if (start >= 0) {
      ph_program_axpby(p, &p->fwd, 1.0, start, 1.0, v, out);
    }
    start = start >= 0 ? out : v;
  }
  for (int i = 0; i < n; i++) {
    if (ph_program_absorbed(p, term[i])) {
      int64_t col = 0;
      int index = 0;
      emit_product(p, ph_program_member(p, term[i], &col, &index), start, out);
      start = out;
    }
  }
  if (start != out) { /* a single plain value */
    ph_program_axpby(p, &p->fwd, 1.0, start, 0.0, -1, out);
  }
}

/* The same sum with the port terms summed apart, so that their norm can be read. term has room for 2 n. */
static void sum_apart(ph_program *p, int *term, int n, int out) {
  int *port = term + n;
  int nc = 0;
  int np = 0;
  for (int i = 0; i < n; i++) {
    if (state_channel(&p->graph, term[i])) {
      term[nc++] = term[i];
    } else {
      port[np++] = term[i];
    }
  }
  if (np == 0 || nc == 0) {
    emit_sum(p, np ? port : term, n, out);
    return;
  }
  p->port = ph_program_slot(p, PH_SP_SCRATCH, p->graph.node[p->graph.result].shape);
  emit_sum(p, port, np, p->port);
  emit_sum(p, term, nc, out);
  ph_program_axpby(p, &p->fwd, 1.0, out, 1.0, p->port, out);
}

static void lower_sum(ph_program *p, int node, const bool *saved, bool probe) {
  int out = ph_program_slot(p, home(p, node, saved), p->graph.node[node].shape);
  p->value[node] = out;
  int *term = ph_mem_new(2 * (size_t)p->graph.n, sizeof *term);
  p->failed |= !term;
  if (p->failed) {
    ph_mem_free(term);
    return;
  }
  int n = ph_graph_sum_terms(&p->graph, node, term);
  if (probe && node == p->graph.result) {
    sum_apart(p, term, n, out);
  } else {
    emit_sum(p, term, n, out);
  }
  ph_mem_free(term);
}

static int operand(ph_program *p, int node) {
  if (!ph_graph_is_param(&p->graph, node)) {
    return p->value[node];
  }
  int w = ph_program_weight(p, node);
  if (p->failed) {
    return 0;
  }
  p->weight[w].pack = ph_program_take(&p->pack, p->weight[w].rows * p->weight[w].cols);
  p->weight[w].grad = ph_program_take(&p->grad, p->weight[w].rows * p->weight[w].cols);
  return ~w;
}

/* What the op takes besides its operands, for a full tile: scratch, and the slot of what it keeps for its adjoint. */
static void lower_needs(ph_program *p, int node) {
  const ph_gnode *n = &p->graph.node[node];
  ph_call c = ph_graph_call(&p->graph, node, p->tile);
  ph_needs need = ph_op_needs(n->op, &c);
  p->op_scratch = need.scratch > p->op_scratch ? need.scratch : p->op_scratch;
  if (need.aux) {
    p->aux[node] = ph_program_slot(p, PH_SP_TAPE, ph_shape_with_cols(n->shape, need.aux));
  }
}

static void lower_op(ph_program *p, int node, const bool *saved) {
  const ph_gnode *n = &p->graph.node[node];
  int out = ph_program_slot(p, home(p, node, saved), n->shape);
  p->value[node] = out;
  int in[PH_OP_ARGS] = {0};
  for (int a = 0; a < n->nargs; a++) {
    in[a] = operand(p, n->arg[a]);
  }
  lower_needs(p, node);
  ph_ins *i = ph_program_emit(p, &p->fwd, PH_INS_OP);
  i->op = n->op;
  i->nargs = n->nargs;
  i->out = out;
  i->aux = p->aux[node];
  i->out_shape = n->shape;
  memcpy(i->attr, n->attr, sizeof i->attr);
  for (int a = 0; a < n->nargs; a++) {
    i->in[a] = in[a];
    i->in_shape[a] = p->graph.node[n->arg[a]].shape;
  }
}

static void lower_node(ph_program *p, int i, const bool *saved, bool probe) {
  const ph_graph *g = &p->graph;
  int64_t col = 0;
  int index = 0;
  if (!g->node[i].live || ph_graph_is_param(g, i) || p->value[i] >= 0 || ph_program_absorbed(p, i)) {
    return;
  }
  if (ph_graph_role(g, i) == PH_ROLE_APPLY || ph_program_member(p, i, &col, &index) >= 0) {
    lower_member(p, i, saved);
  } else if (ph_graph_role(g, i) == PH_ROLE_ADD) {
    lower_sum(p, i, saved, probe);
  } else {
    lower_op(p, i, saved);
  }
}

static void lower_forward(ph_program *p, const bool *saved, bool probe) {
  ph_graph *g = &p->graph;
  p->state = ph_program_slot(p, PH_SP_TAPE, p->seg->state);
  p->value[g->state] = p->state;
  if (g->input >= 0) {
    p->value[g->input] = ph_program_slot(p, PH_SP_IN, g->node[g->input].shape);
  }
  for (int i = 0; i < g->n && !p->failed; i++) {
    lower_node(p, i, saved, probe);
  }
  if (p->failed) {
    return;
  }
  int result = p->value[g->result];
  if (p->slot[result].space != PH_SP_NEXT || p->slot[result].base >= 0) {
    ph_program_axpby(p, &p->fwd, 1.0, result, 0.0, -1, ph_program_slot(p, PH_SP_NEXT, g->node[g->result].shape));
  }
  if (g->read >= 0) {
    ph_program_axpby(p, &p->fwd, 1.0, p->value[g->read], 0.0, -1,
                     ph_program_slot(p, PH_SP_OUT, g->node[g->read].shape));
  }
}

ph_status ph_program_build(ph_program *p, const ph_ir_segment *seg, const ph_lower_options *o, ph_err *err) {
  *p = (ph_program){.seg = seg, .port = -1, .tile = o->tile};
  ph_status st = ph_graph_build(&p->graph, seg, o->rows, err);
  if (st) {
    return st;
  }
  size_t n = (size_t)p->graph.n;
  bool *saved = ph_mem_new(n, sizeof *saved);
  p->value = ph_mem_new(n, sizeof *p->value);
  p->aux = ph_mem_new(n, sizeof *p->aux);
  p->failed = !saved || !p->value || !p->aux;
  for (size_t i = 0; i < n && !p->failed; i++) {
    p->value[i] = p->aux[i] = -1;
  }
  if (!p->failed) {
    ph_program_products(p);
  }
  if (!p->failed) {
    mark_saved(p, saved);
    lower_forward(p, saved, o->probe);
  }
  if (!p->failed) {
    /* A training step never needs the data's cotangent: a first segment leaves it out of bwd, and only `entry` computes it. */
    ph_program_backward(p, &p->bwd, !(o->first && seg->once), !o->first);
    if (o->first && (seg->once || seg->driven)) {
      ph_program_backward(p, &p->entry, true, true);
    }
  }
  ph_mem_free(saved);
  if (p->failed) {
    ph_program_fini(p);
    return ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model");
  }
  ph_program_place(p);
  return PH_OK;
}

void ph_program_fini(ph_program *p) {
  for (int i = 0; i < p->nproducts; i++) {
    ph_mem_free(p->product[i].member);
    ph_mem_free(p->product[i].matrix);
    ph_mem_free(p->product[i].bias);
  }
  ph_graph_fini(&p->graph);
  ph_mem_free(p->slot);
  ph_mem_free(p->product);
  ph_mem_free(p->weight);
  ph_mem_free(p->fwd.ins);
  ph_mem_free(p->bwd.list.ins);
  ph_mem_free(p->entry.list.ins);
  ph_mem_free(p->value);
  ph_mem_free(p->aux);
  memset(p, 0, sizeof *p);
}
