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
  for (int m = 0; m < q->members && !p->code.failed; m++) {
    ph_shape view = p->graph.node[q->member[m]].shape;
    p->code.value[q->member[m]] = ph_program_view(p, q->out, col, view);
    col += view.cols;
  }
}

static void emit_product(ph_program *p, int product, int d, int out) {
  ph_ins i = ph_ins_of(PH_INS_PRODUCT);
  i.product = product;
  i.a = p->code.value[p->product[product].input];
  i.d = d;
  i.out = out;
  ph_code_emit(&p->code, &p->code.fwd, &i);
}

static void lower_member(ph_program *p, int node, const bool *saved) {
  int i = ph_program_member(p, node);
  if (i < 0 || p->code.failed) {
    return; /* an apply whose bias ends the member */
  }
  ph_product *q = &p->product[i];
  if (q->members == 1) {
    p->code.value[node] = ph_program_slot(p, home(p, node, saved), p->graph.node[node].shape);
    emit_product(p, i, -1, p->code.value[node]);
  } else if (q->out < 0) {
    place_concatenated(p, q, saved);
    emit_product(p, i, -1, q->out);
  }
}

/* A sum being lowered: its terms, and the slot and shape of the result. */
typedef struct sum {
  ph_shape shape;
  int out;
  int n, *term;
} sum;

/* Values first (the first starts the accumulators), then products that accumulate. */
static void emit_sum(ph_program *p, const sum *s) {
  ph_code *c = &p->code;
  int start = -1; /* what the next product adds to */
  for (int i = 0; i < s->n; i++) {
    if (ph_program_absorbed(p, s->term[i])) {
      continue;
    }
    int v = c->value[s->term[i]];
    if (start >= 0) {
      ph_code_axpby(c, &c->fwd, s->shape, s->out, ph_coef_of(1.0), start, 1.0, v);
    }
    start = start >= 0 ? s->out : v;
  }
  for (int i = 0; i < s->n; i++) {
    if (ph_program_absorbed(p, s->term[i])) {
      emit_product(p, ph_program_member(p, s->term[i]), start, s->out);
      start = s->out;
    }
  }
  if (start != s->out) { /* a single plain value */
    ph_code_copy(c, &c->fwd, s->shape, s->out, start);
  }
}

/* The same with the port terms summed apart, so that their norm can be read. Each term is of one part (ph_graph_build).
 * s->term has room for 2 n. */
static void sum_apart(ph_program *p, const sum *s) {
  sum channel = {s->shape, s->out, 0, s->term};
  sum port = {s->shape, -1, 0, s->term + s->n};
  for (int i = 0; i < s->n; i++) {
    sum *to = p->graph.node[s->term[i]].parts == PH_PART_CHANNEL ? &channel : &port;
    to->term[to->n++] = s->term[i];
  }
  if (port.n == 0 || channel.n == 0) {
    emit_sum(p, s);
    return;
  }
  port.out = p->port = ph_program_slot(p, PH_SP_SCRATCH, s->shape);
  emit_sum(p, &port);
  emit_sum(p, &channel);
  ph_code_axpby(&p->code, &p->code.fwd, s->shape, s->out, ph_coef_of(1.0), s->out, 1.0, p->port);
}

static void lower_sum(ph_program *p, int node, const bool *saved, bool probe) {
  sum s = {.shape = p->graph.node[node].shape, .term = ph_mem_new(2 * (size_t)p->graph.n, sizeof *s.term)};
  s.out = p->code.value[node] = ph_program_slot(p, home(p, node, saved), s.shape);
  p->code.failed |= !s.term;
  if (!p->code.failed) {
    s.n = ph_graph_sum_terms(&p->graph, node, s.term);
    if (probe && node == p->graph.result) {
      sum_apart(p, &s);
    } else {
      emit_sum(p, &s);
    }
  }
  ph_mem_free(s.term);
}

/* A parameter value that an op of the stream reads: its copy in the pack, its place in the gradient. */
static int weight_of(ph_program *p, int node) {
  int w = ph_program_weight(p, node);
  if (!p->code.failed) {
    p->weight[w].pack = ph_code_take(&p->pack, p->weight[w].rows * p->weight[w].cols);
    p->weight[w].grad = ph_code_take(&p->grad, p->weight[w].rows * p->weight[w].cols);
  }
  return w;
}

static void lower_op(ph_program *p, int node, const bool *saved) {
  const ph_gnode *n = &p->graph.node[node];
  p->code.value[node] = ph_program_slot(p, home(p, node, saved), n->shape);
  int64_t aux = ph_code_needs(&p->code, node, p->tile).aux;
  if (aux) {
    p->code.aux[node] = ph_program_slot(p, PH_SP_TAPE, ph_shape_with_cols(n->shape, aux));
  }
  ph_ins i = ph_code_call(&p->code, node);
  for (int a = 0; a < n->nargs; a++) {
    if (ph_graph_is_param(&p->graph, n->arg[a])) {
      i.weight[a] = weight_of(p, n->arg[a]);
    }
  }
  ph_code_emit(&p->code, &p->code.fwd, &i);
}

static void lower_node(ph_program *p, int i, const bool *saved, bool probe) {
  const ph_graph *g = &p->graph;
  if (!g->node[i].live || ph_graph_is_param(g, i) || p->code.value[i] >= 0 || ph_program_absorbed(p, i)) {
    return;
  }
  if (ph_graph_role(g, i) == PH_ROLE_APPLY || ph_program_member(p, i) >= 0) {
    lower_member(p, i, saved);
  } else if (ph_graph_role(g, i) == PH_ROLE_ADD) {
    lower_sum(p, i, saved, probe);
  } else {
    lower_op(p, i, saved);
  }
}

static void hand_out(ph_program *p, int node, ph_space space) {
  ph_shape shape = p->graph.node[node].shape;
  int out = ph_program_slot(p, space, shape);
  ph_code_copy(&p->code, &p->code.fwd, shape, out, p->code.value[node]);
}

static void lower_forward(ph_program *p, const bool *saved, bool probe) {
  ph_graph *g = &p->graph;
  p->state = ph_program_slot(p, PH_SP_TAPE, p->seg->state);
  p->code.value[g->state] = p->state;
  if (g->input >= 0) {
    p->code.value[g->input] = ph_program_slot(p, PH_SP_IN, g->node[g->input].shape);
  }
  for (int i = 0; i < g->n && !p->code.failed; i++) {
    lower_node(p, i, saved, probe);
  }
  if (p->code.failed) {
    return;
  }
  const ph_slot *result = &p->slot[p->code.value[g->result]];
  if (result->space != PH_SP_NEXT || result->base >= 0) {
    hand_out(p, g->result, PH_SP_NEXT);
  }
  if (g->read >= 0) {
    hand_out(p, g->read, PH_SP_OUT);
  }
}

ph_status ph_program_build(ph_program *p, const ph_ir_segment *seg, const ph_lower_options *o, ph_err *err) {
  *p = (ph_program){.seg = seg, .port = -1, .tile = o->tile};
  ph_status st = ph_graph_build(&p->graph, seg, o->rows, o->probe, err);
  if (st) {
    return st;
  }
  ph_code_init(&p->code, &p->graph);
  bool *saved = ph_mem_new((size_t)p->graph.n, sizeof *saved);
  p->code.failed |= !saved;
  if (!p->code.failed) {
    ph_program_products(p);
  }
  if (!p->code.failed) {
    mark_saved(p, saved);
    lower_forward(p, saved, o->probe);
  }
  if (!p->code.failed) {
    /* A training step never needs the data's cotangent: a first segment leaves it out of bwd, and only `entry` computes it. */
    ph_program_backward(p, &p->bwd, !(o->first && seg->once), !o->first);
    if (o->first && (seg->once || seg->driven)) {
      ph_program_backward(p, &p->entry, true, true);
    }
  }
  ph_mem_free(saved);
  if (p->code.failed) {
    ph_program_fini(p);
    return ph_code_no_memory(err);
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
  ph_code_fini(&p->code);
  ph_mem_free(p->bwd.list.ins);
  ph_mem_free(p->entry.list.ins);
  memset(p, 0, sizeof *p);
}
