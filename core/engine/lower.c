/* lower.c - stream phase, forward: graph nodes to slots and instructions.
 *
 * Matrices that act on the same state become one product [M; W] x with one concatenated tile; a bias that follows a
 * matrix starts the accumulators; a product that is a term of a sum accumulates into the sum. What backward will read
 * lies in the tape, everything else in scratch.
 */
#include "base/mem.h"
#include "engine/program.h"

/* ---- growing arrays ---- */

static void *room_for(ph_program *p, void *array, int used, int *room, size_t size) {
  if (used < *room || p->failed) {
    return array;
  }
  int more = *room ? 2 * *room : 16;
  void *grown = ph_mem_grow(array, (size_t)used * size, (size_t)more, size);
  p->failed |= !grown;
  *room = grown ? more : *room;
  return grown ? grown : array;
}

int ph_slot_new(ph_program *p, ph_space space, ph_shape shape) {
  p->slot = room_for(p, p->slot, p->nslots, &p->slot_room, sizeof *p->slot);
  if (p->failed) {
    return 0;
  }
  p->slot[p->nslots] = (ph_vslot){.space = space, .shape = shape, .base = -1, .mirror = -1, .off = -1, .ld = shape.cols};
  return p->nslots++;
}

int ph_slot_view(ph_program *p, int base, int64_t col, ph_shape shape) {
  int s = ph_slot_new(p, p->failed ? PH_SP_SCRATCH : p->slot[base].space, shape);
  if (!p->failed) {
    p->slot[s].base = base;
    p->slot[s].col = (int)col;
  }
  return s;
}

ph_ins *ph_emit(ph_program *p, ph_list *list, ph_ins_kind kind) {
  static ph_ins sink;
  list->ins = room_for(p, list->ins, list->n, &list->room, sizeof *list->ins);
  if (p->failed) {
    return &sink;
  }
  ph_ins *i = &list->ins[list->n++];
  *i = (ph_ins){.kind = kind, .product = -1, .weight = -1, .a = -1, .b = -1, .d = -1, .out = -1, .aux = -1};
  for (int k = 0; k < PH_OP_ARGS; k++) {
    i->in[k] = i->gin[k] = PH_NO_SLOT;
  }
  return i;
}

void ph_emit_axpby(ph_program *p, ph_list *list, double alpha, int a, double beta, int b, int out) {
  ph_ins *i = ph_emit(p, list, PH_INS_AXPBY);
  i->alpha = alpha;
  i->a = a;
  i->beta = beta;
  i->b = b;
  i->out = out;
  if (!p->failed) {
    i->out_shape = p->slot[out].shape;
  }
}

static int weight_new(ph_program *p, int node) {
  p->weight = room_for(p, p->weight, p->nweights, &p->weight_room, sizeof *p->weight);
  if (p->failed) {
    return 0;
  }
  ph_shape s = p->graph.node[node].shape;
  p->weight[p->nweights] = (ph_weight){.node = node, .rows = s.rows, .cols = s.cols, .pack = -1, .grad = -1};
  return p->nweights++;
}

static int64_t aligned(int64_t n) { return (n + 15) / 16 * 16; }

static int64_t take(int64_t *total, int64_t n) {
  int64_t at = *total;
  *total += aligned(n);
  return at;
}

/* ---- products ---- */

/* The node that ends a product member: the bias after an apply when that is its only use, else the apply. */
static int member_end(const ph_graph *g, int apply) {
  int user = g->node[apply].user;
  bool only = g->node[apply].uses == 1 && user >= 0;
  return only && ph_graph_is_op(g, user, "bias") && g->node[user].arg[0] == apply ? user : apply;
}

int ph_member_find(const ph_program *p, int node, int64_t *col, int *index) {
  for (int i = 0; i < p->nproducts; i++) {
    int64_t at = 0;
    for (int m = 0; m < p->product[i].members; m++) {
      if (p->product[i].member[m] == node) {
        *col = at;
        *index = m;
        return i;
      }
      at += p->weight[p->product[i].matrix[m]].rows;
    }
  }
  return -1;
}

static int product_of_input(ph_program *p, int input) {
  for (int i = 0; i < p->nproducts; i++) {
    if (p->product[i].input == input) {
      return i;
    }
  }
  p->product = room_for(p, p->product, p->nproducts, &p->product_room, sizeof *p->product);
  if (p->failed) {
    return -1;
  }
  ph_product q = {.input = input, .wt = -1, .wn = -1, .wb = -1, .out = -1, .cot = -1, .K = p->graph.node[input].shape.cols};
  q.member = ph_mem_new((size_t)p->graph.n, sizeof *q.member);
  q.matrix = ph_mem_new((size_t)p->graph.n, sizeof *q.matrix);
  q.bias = ph_mem_new((size_t)p->graph.n, sizeof *q.bias);
  p->failed |= !q.member || !q.matrix || !q.bias;
  p->product[p->nproducts] = q;
  return p->nproducts++;
}

static void add_member(ph_program *p, int apply) {
  ph_graph *g = &p->graph;
  int i = product_of_input(p, g->node[apply].arg[1]);
  if (p->failed) {
    return;
  }
  ph_product *q = &p->product[i];
  int end = member_end(g, apply);
  q->member[q->members] = end;
  q->matrix[q->members] = weight_new(p, g->node[apply].arg[0]);
  q->bias[q->members] = end != apply ? weight_new(p, g->node[end].arg[1]) : -1;
  q->N += g->node[apply].shape.cols;
  q->members++;
}

static void lay_product(ph_program *p, ph_product *q) {
  q->wt = take(&p->pack, q->N * q->K);
  q->wn = take(&p->pack, q->N * q->K);
  q->grad = take(&p->grad, q->N * q->K);
  int64_t row = 0;
  for (int m = 0; m < q->members; m++) {
    p->weight[q->matrix[m]].grad = q->grad + row * q->K;
    row += p->weight[q->matrix[m]].rows;
    if (q->bias[m] >= 0) {
      q->wb = q->wb >= 0 ? q->wb : take(&p->pack, q->N);
      p->weight[q->bias[m]].grad = take(&p->grad, p->weight[q->bias[m]].cols);
    }
  }
}

static void find_products(ph_program *p) {
  for (int i = 0; i < p->graph.n && !p->failed; i++) {
    if (p->graph.node[i].live && ph_graph_is_op(&p->graph, i, "apply")) {
      add_member(p, i);
    }
  }
  for (int i = 0; i < p->nproducts && !p->failed; i++) {
    lay_product(p, &p->product[i]);
  }
}

/* ---- sums ---- */

static bool inner_add(const ph_graph *g, int i) {
  int user = g->node[i].user;
  return ph_graph_is_op(g, i, "add") && g->node[i].uses == 1 && user >= 0 && ph_graph_is_op(g, user, "add") && !ph_graph_is_param(g, i);
}

int ph_sum_terms(const ph_graph *g, int root, int *term) {
  int n = 0;
  for (int a = 0; a < 2; a++) {
    int t = g->node[root].arg[a];
    if (inner_add(g, t)) {
      n += ph_sum_terms(g, t, term + n);
    } else {
      term[n++] = t;
    }
  }
  return n;
}

bool ph_absorbed(const ph_program *p, int node) {
  const ph_graph *g = &p->graph;
  if (inner_add(g, node)) {
    return true;
  }
  int64_t col = 0;
  int index = 0;
  int i = ph_member_find(p, node, &col, &index);
  int user = g->node[node].user;
  return i >= 0 && p->product[i].members == 1 && g->node[node].uses == 1 && user >= 0 && ph_graph_is_op(g, user, "add");
}

/* ---- what backward reads ---- */

static void mark_saved(const ph_program *p, bool *saved) {
  const ph_graph *g = &p->graph;
  for (int i = 0; i < p->nproducts; i++) {
    saved[p->product[i].input] = true;
  }
  for (int i = 0; i < g->n; i++) {
    const ph_gnode *n = &g->node[i];
    if (!n->live || ph_graph_is_param(g, i) || !n->op || ph_graph_is_op(g, i, "apply") || ph_graph_is_op(g, i, "bias")) {
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
  q->out = ph_slot_new(p, keep ? PH_SP_TAPE : PH_SP_SCRATCH, s);
  int64_t col = 0;
  for (int m = 0; m < q->members && !p->failed; m++) {
    ph_shape view = p->graph.node[q->member[m]].shape;
    p->value[q->member[m]] = ph_slot_view(p, q->out, col, view);
    col += view.cols;
  }
}

static void emit_product(ph_program *p, int i, int d, int out) {
  ph_ins *ins = ph_emit(p, &p->fwd, PH_INS_PRODUCT);
  ins->product = i;
  ins->a = p->value[p->product[i].input];
  ins->d = d;
  ins->out = out;
}

static void lower_member(ph_program *p, int node, const bool *saved) {
  int64_t col = 0;
  int index = 0;
  int i = ph_member_find(p, node, &col, &index);
  if (i < 0 || p->failed) {
    return; /* an apply whose bias ends the member */
  }
  ph_product *q = &p->product[i];
  if (q->members == 1) {
    p->value[node] = ph_slot_new(p, home(p, node, saved), p->graph.node[node].shape);
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
  if (ph_graph_is_op(g, i, "scale")) {
    return state_channel(g, g->node[i].arg[0]);
  }
  return ph_graph_is_op(g, i, "apply") && state_channel(g, g->node[i].arg[1]);
}

/* out = sum of terms: values first (the first starts the accumulators), then products that accumulate. */
static void emit_sum(ph_program *p, const int *term, int n, int out) {
  int start = -1; /* what the next product adds to */
  for (int i = 0; i < n; i++) {
    if (ph_absorbed(p, term[i])) {
      continue;
    }
    int v = p->value[term[i]];
    if (start >= 0) {
      ph_emit_axpby(p, &p->fwd, 1.0, start, 1.0, v, out);
    }
    start = start >= 0 ? out : v;
  }
  for (int i = 0; i < n; i++) {
    if (ph_absorbed(p, term[i])) {
      int64_t col = 0;
      int index = 0;
      emit_product(p, ph_member_find(p, term[i], &col, &index), start, out);
      start = out;
    }
  }
  if (start != out) { /* a single plain value */
    ph_emit_axpby(p, &p->fwd, 1.0, start, 0.0, -1, out);
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
  p->port = ph_slot_new(p, PH_SP_SCRATCH, p->graph.node[p->graph.result].shape);
  emit_sum(p, port, np, p->port);
  emit_sum(p, term, nc, out);
  ph_emit_axpby(p, &p->fwd, 1.0, out, 1.0, p->port, out);
}

static void lower_sum(ph_program *p, int node, const bool *saved, bool probe) {
  int out = ph_slot_new(p, home(p, node, saved), p->graph.node[node].shape);
  p->value[node] = out;
  int *term = ph_mem_new(2 * (size_t)p->graph.n, sizeof *term);
  p->failed |= !term;
  if (p->failed) {
    ph_mem_free(term);
    return;
  }
  int n = ph_sum_terms(&p->graph, node, term);
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
  int w = weight_new(p, node);
  if (p->failed) {
    return 0;
  }
  p->weight[w].pack = take(&p->pack, p->weight[w].rows * p->weight[w].cols);
  p->weight[w].grad = take(&p->grad, p->weight[w].rows * p->weight[w].cols);
  return ~w;
}

static void lower_op(ph_program *p, int node, const bool *saved) {
  const ph_gnode *n = &p->graph.node[node];
  int out = ph_slot_new(p, home(p, node, saved), n->shape);
  p->value[node] = out;
  if (n->op->aux) {
    p->aux[node] = ph_slot_new(p, PH_SP_TAPE, (ph_shape){n->shape.pos, 1, n->op->aux});
  }
  int in[PH_OP_ARGS] = {0};
  for (int a = 0; a < n->nargs; a++) {
    in[a] = operand(p, n->arg[a]);
  }
  ph_ins *i = ph_emit(p, &p->fwd, PH_INS_OP);
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
  if (!g->node[i].live || ph_graph_is_param(g, i) || p->value[i] >= 0 || ph_absorbed(p, i)) {
    return;
  }
  if (ph_graph_is_op(g, i, "apply") || ph_member_find(p, i, &col, &index) >= 0) {
    lower_member(p, i, saved);
  } else if (ph_graph_is_op(g, i, "add")) {
    lower_sum(p, i, saved, probe);
  } else {
    lower_op(p, i, saved);
  }
}

static void lower_forward(ph_program *p, const bool *saved, bool probe) {
  ph_graph *g = &p->graph;
  p->state = ph_slot_new(p, PH_SP_TAPE, p->seg->state);
  p->value[g->state] = p->state;
  if (g->input >= 0) {
    p->value[g->input] = ph_slot_new(p, PH_SP_IN, g->node[g->input].shape);
  }
  for (int i = 0; i < g->n && !p->failed; i++) {
    lower_node(p, i, saved, probe);
  }
  if (p->failed) {
    return;
  }
  int result = p->value[g->result];
  if (p->slot[result].space != PH_SP_NEXT || p->slot[result].base >= 0) {
    ph_emit_axpby(p, &p->fwd, 1.0, result, 0.0, -1, ph_slot_new(p, PH_SP_NEXT, g->node[g->result].shape));
  }
  if (g->read >= 0) {
    ph_emit_axpby(p, &p->fwd, 1.0, p->value[g->read], 0.0, -1, ph_slot_new(p, PH_SP_OUT, g->node[g->read].shape));
  }
}

/* ---- places ---- */

static int64_t *space_total(ph_program *p, ph_space s) {
  switch (s) {
  case PH_SP_TAPE:
    return &p->record;
  case PH_SP_SCRATCH:
    return &p->scratch;
  case PH_SP_COT:
  case PH_SP_COTNEXT:
    return &p->cot;
  default:
    return NULL; /* one slot only, at the start of its space */
  }
}

static void place_slots(ph_program *p) {
  for (int i = 0; i < p->nslots; i++) {
    ph_vslot *s = &p->slot[i];
    if (s->base >= 0 || s->mirror >= 0) {
      continue;
    }
    int64_t *total = space_total(p, s->space);
    s->off = total ? take(total, p->tile * s->shape.pos * s->shape.cols) : 0;
  }
  for (int pass = 0; pass < 2; pass++) { /* views, then mirrors of views */
    for (int i = 0; i < p->nslots; i++) {
      ph_vslot *s = &p->slot[i];
      int of = pass == 0 ? s->base : s->mirror;
      if (of >= 0) {
        s->off = p->slot[of].off + (pass == 0 ? s->col : 0);
        s->ld = p->slot[of].ld;
      }
    }
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
    find_products(p);
  }
  if (!p->failed) {
    mark_saved(p, saved);
    lower_forward(p, saved, o->probe);
  }
  if (!p->failed) {
    bool leaf = o->first && seg->kind == PH_SEG_ONCE; /* nobody needs the data's cotangent in a training step */
    ph_program_backward(p, &p->bwd, !leaf);
    if (leaf) {
      ph_program_backward(p, &p->entry, true);
    }
  }
  ph_mem_free(saved);
  if (p->failed) {
    ph_program_fini(p);
    return ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model");
  }
  place_slots(p);
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
