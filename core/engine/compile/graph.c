/* graph.c - a segment as a working graph, rewritten into the form that compiles well.
 *
 * Rules, each exact in real arithmetic:
 *   a - b                 ->  a + (-1) b
 *   c (M x)               ->  (c M) x          when M x has no other use: the factor moves into the parameter phase
 *   c (x + b)             ->  c x + c b        likewise
 *   c1 (c2 x)             ->  (c1 c2) x        when both are plain numbers
 *   A (B x)               ->  (A B) x          when rows > 2d (docs/laws.md, 4.4) and the product is not larger
 *   A (C z + p)           ->  A C z + A p      when the ports of the result are to be seen apart
 */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "engine/compile/code.h"

typedef struct builder {
  ph_graph *g;
  const int *uses; /* of the segment's nodes */
  int64_t rows;
  bool failed;
} builder;

static int add_node(builder *b, ph_gnode n) {
  ph_graph *g = b->g;
  g->node = ph_code_room(g->node, g->n, &g->room, sizeof *g->node, &b->failed);
  if (b->failed) {
    return 0;
  }
  g->node[g->n] = n;
  return g->n++;
}

void ph_coefs_at(const ph_coef attr[PH_OP_ATTRS], int64_t t, double out[PH_OP_ATTRS]) {
  for (int a = 0; a < PH_OP_ATTRS; a++) {
    out[a] = ph_coef_at(attr[a], t);
  }
}

bool ph_coefs_vary(const ph_coef attr[PH_OP_ATTRS]) {
  for (int a = 0; a < PH_OP_ATTRS; a++) {
    if (attr[a].table) {
      return true;
    }
  }
  return false;
}

/* attr: NULL for none. */
static int make(builder *b, const ph_op *op, int nargs, const int *arg, const ph_coef *attr) {
  if (b->failed) {
    return 0;
  }
  ph_gnode n = {.op = op, .param = -1, .nargs = nargs};
  ph_shape in[PH_OP_ARGS];
  unsigned parts[PH_OP_ARGS] = {0};
  for (int i = 0; i < nargs; i++) {
    n.arg[i] = arg[i];
    in[i] = b->g->node[arg[i]].shape;
    parts[i] = b->g->node[arg[i]].parts;
  }
  if (attr) {
    memcpy(n.attr, attr, sizeof n.attr);
  }
  ph_err err;
  double first[PH_OP_ATTRS];
  ph_coefs_at(n.attr, 0, first);
  ph_status st = ph_op_shape(op, in, first, &n.shape, &err);
  assert(st == PH_OK && "the rewrites keep shapes");
  n.parts = ph_shape_is_param(n.shape) ? 0 : ph_op_parts(op, parts);
  return add_node(b, n);
}

static int make_pair(builder *b, ph_role role, int x, int y) { return make(b, ph_op_of(role), 2, (int[]){x, y}, NULL); }

/* A (B x) -> (A B) x when it pays. `alone`: B x has no other use. */
static int make_apply(builder *b, int A, int x, bool alone) {
  const ph_gnode *n = &b->g->node[x];
  if (alone && ph_graph_role(b->g, x) == PH_ROLE_APPLY) {
    ph_shape a = b->g->node[A].shape;
    ph_shape m = b->g->node[n->arg[0]].shape;
    int64_t d = a.rows > m.cols ? a.rows : m.cols;
    if (b->rows > 2 * d && a.rows * m.cols <= m.rows * (a.rows + m.cols)) {
      int inner = n->arg[1];
      int AB = make_pair(b, PH_ROLE_MATMUL, A, n->arg[0]);
      return make_apply(b, AB, inner, false);
    }
  }
  return make_pair(b, PH_ROLE_APPLY, A, x);
}

/* A factor that differs from iteration to iteration stays with the states where parameters are tied, and is not multiplied by
 * another. */
static int make_scale(builder *b, ph_coef c, int x, bool alone) {
  assert(b->g->node && "arguments come before what uses them");
  const ph_gnode n = b->g->node[x];
  ph_role role = alone ? ph_graph_role(b->g, x) : PH_ROLE_NONE;
  bool to_params = !(c.table && b->g->seg->tied);
  if (role == PH_ROLE_SCALE && !c.table && !n.attr[0].table) {
    return make_scale(b, ph_coef_of(c.value * n.attr[0].value), n.arg[0], false);
  }
  if (role == PH_ROLE_APPLY && to_params) {
    return make_pair(b, PH_ROLE_APPLY, make_scale(b, c, n.arg[0], false), n.arg[1]);
  }
  if (role == PH_ROLE_BIAS && to_params) {
    int y = make_scale(b, c, n.arg[0], true);
    return make_pair(b, PH_ROLE_BIAS, y, make_scale(b, c, n.arg[1], false));
  }
  return make(b, ph_op_of(PH_ROLE_SCALE), 1, &x, (ph_coef[PH_OP_ATTRS]){c});
}

static int *leaf_of(ph_graph *g, ph_role role) { return role == PH_ROLE_STATE ? &g->state : &g->input; }

/* A leaf that is already there is used again. */
static int make_leaf(builder *b, ph_role role, ph_shape shape) {
  int *leaf = leaf_of(b->g, role);
  if (*leaf < 0) {
    const ph_op *op = ph_op_of(role);
    *leaf = add_node(b, (ph_gnode){.op = op, .param = -1, .shape = shape, .parts = ph_op_parts(op, NULL)});
  }
  return *leaf;
}

static int convert(builder *b, const ph_ir_node *n, const int *arg, const bool *alone) {
  ph_coef attr[PH_OP_ATTRS];
  for (int a = 0; a < PH_OP_ATTRS; a++) {
    attr[a] = (ph_coef){n->attr[a], n->table[a] < 0 ? NULL : b->g->seg->tables.at[n->table[a]].value};
  }
  switch (n->op->role) {
  case PH_ROLE_STATE:
  case PH_ROLE_INPUT: return make_leaf(b, n->op->role, n->shape);
  case PH_ROLE_SUB: return make_pair(b, PH_ROLE_ADD, arg[0], make_scale(b, ph_coef_of(-1.0), arg[1], alone[1]));
  case PH_ROLE_SCALE: return make_scale(b, attr[0], arg[0], alone[0]);
  case PH_ROLE_APPLY: return make_apply(b, arg[0], arg[1], alone[1]);
  default: return make(b, n->op, n->nargs, arg, attr);
  }
}

static void count_uses(const ph_ir_segment *seg, int *uses) {
  for (int i = 0; i < seg->nnodes; i++) {
    for (int a = 0; a < seg->node[i].nargs; a++) {
      if (!seg->node[i].arg[a].is_param) {
        uses[seg->node[i].arg[a].index]++;
      }
    }
  }
  uses[seg->result]++;
  if (seg->read >= 0) {
    uses[seg->read]++;
  }
  for (int i = 0; i < seg->nterms; i++) {
    uses[seg->term[i].node]++;
  }
  for (int i = 0; i < seg->nobserves; i++) {
    uses[seg->observe[i].node]++;
  }
}

static void convert_outputs(ph_graph *g, const int *map) {
  const ph_ir_segment *seg = g->seg;
  g->result = map[seg->result];
  g->read = seg->read >= 0 ? map[seg->read] : -1;
  for (int i = 0; i < seg->nterms; i++) {
    g->term[i] = map[seg->term[i].node];
  }
  for (int i = 0; i < seg->nobserves; i++) {
    g->observe[i] = map[seg->observe[i].node];
  }
}

static void convert_all(builder *b, int *leaf, int *map) {
  const ph_ir_segment *seg = b->g->seg;
  for (int i = 0; i < seg->nparams; i++) {
    leaf[i] = add_node(b, (ph_gnode){.param = i, .shape = ph_shape_param(seg->param[i].rows, seg->param[i].cols)});
  }
  for (int i = 0; i < seg->nnodes && !b->failed; i++) {
    const ph_ir_node *n = &seg->node[i];
    int arg[PH_OP_ARGS] = {0};
    bool alone[PH_OP_ARGS] = {0};
    for (int a = 0; a < n->nargs; a++) {
      arg[a] = n->arg[a].is_param ? leaf[n->arg[a].index] : map[n->arg[a].index];
      alone[a] = !n->arg[a].is_param && b->uses[n->arg[a].index] == 1;
    }
    map[i] = convert(b, n, arg, alone);
  }
  if (!b->failed) {
    convert_outputs(b->g, map);
  }
}

static void use(ph_graph *g, int i, int user) {
  g->node[i].uses++;
  g->node[i].user = user;
}

/* The node leaves the iteration. */
static void mark_output(ph_graph *g, int i) {
  g->node[i].live = true;
  use(g, i, -1);
}

static void mark_live(ph_graph *g) {
  for (int i = 0; i < g->n; i++) {
    g->node[i].user = -1;
    g->node[i].uses = 0;
    g->node[i].live = false;
  }
  mark_output(g, g->result);
  if (g->read >= 0) {
    mark_output(g, g->read);
  }
  for (int i = 0; i < g->seg->nterms; i++) {
    mark_output(g, g->term[i]);
  }
  for (int i = 0; i < g->seg->nobserves; i++) {
    mark_output(g, g->observe[i]);
  }
  for (int i = g->n - 1; i >= 0; i--) {
    for (int a = 0; g->node[i].live && a < g->node[i].nargs; a++) {
      g->node[g->node[i].arg[a]].live = true;
      use(g, g->node[i].arg[a], i);
    }
  }
}

/* ---- the result as a sum of channel and port ---- */

static const unsigned BOTH = PH_PART_CHANNEL | PH_PART_PORT;

bool ph_graph_is_inner_add(const ph_graph *g, int i) {
  int user = g->node[i].user;
  return ph_graph_role(g, i) == PH_ROLE_ADD && g->node[i].uses == 1 && user >= 0 &&
         ph_graph_role(g, user) == PH_ROLE_ADD && !ph_graph_is_param(g, i);
}

/* Is every term of the sum rooted at i of one part? */
static bool is_apart(const ph_graph *g, int i) {
  const ph_gnode *n = &g->node[i];
  if (n->parts != BOTH) {
    return true;
  }
  if (ph_graph_role(g, i) != PH_ROLE_ADD || (i != g->result && !ph_graph_is_inner_add(g, i))) {
    return false;
  }
  return is_apart(g, n->arg[0]) && is_apart(g, n->arg[1]);
}

static int part_of(builder *b, int *known, int i, unsigned which);

/* Zero times x, as a part of the result. */
static int make_zero(builder *b, int x, unsigned which) {
  int zero = make_scale(b, ph_coef_of(0.0), x, false);
  if (!b->failed) {
    b->g->node[zero].parts = which;
  }
  return zero;
}

/* A linear op on the parts of its arguments; one that does not have the part counts as zero. */
static int make_linear(builder *b, int *known, ph_gnode n, unsigned which) {
  int arg[PH_OP_ARGS] = {0};
  for (int a = 0; a < n.nargs; a++) {
    bool linear = ph_op_linear(n.op) & 1U << a;
    bool has = b->g->node[n.arg[a]].parts & which;
    arg[a] = !linear ? n.arg[a] : has ? part_of(b, known, n.arg[a], which) : make_zero(b, n.arg[a], which);
  }
  return make(b, n.op, n.nargs, arg, n.attr);
}

/* The channel or the port of a node that has both. A bias is port: where its argument has none, it is added to zero. */
static int make_part(builder *b, int *known, ph_gnode n, unsigned which) {
  bool has[2] = {false};
  for (int a = 0; a < n.nargs; a++) {
    has[a] = (b->g->node[n.arg[a]].parts & which) != 0;
  }
  switch (n.op->role) {
  case PH_ROLE_SCALE: return make_scale(b, n.attr[0], part_of(b, known, n.arg[0], which), true);
  case PH_ROLE_APPLY: return make_apply(b, n.arg[0], part_of(b, known, n.arg[1], which), true);
  case PH_ROLE_BIAS:
    if (which == PH_PART_CHANNEL) {
      return part_of(b, known, n.arg[0], which);
    }
    return make_pair(b, PH_ROLE_BIAS, has[0] ? part_of(b, known, n.arg[0], which) : make_zero(b, n.arg[0], which),
                     n.arg[1]);
  case PH_ROLE_NONE: return make_linear(b, known, n, which);
  default:
    if (has[0] && has[1]) {
      int x = part_of(b, known, n.arg[0], which);
      return make_pair(b, PH_ROLE_ADD, x, part_of(b, known, n.arg[1], which));
    }
    return part_of(b, known, n.arg[has[0] ? 0 : 1], which);
  }
}

/* known: the parts that were made already, two a node; -1. */
static int part_of(builder *b, int *known, int i, unsigned which) {
  if (b->failed || b->g->node[i].parts == which) {
    return i;
  }
  int *part = &known[2 * i + (which == PH_PART_PORT)];
  if (*part < 0) {
    *part = make_part(b, known, b->g->node[i], which);
  }
  return *part;
}

static void set_apart(builder *b) {
  ph_graph *g = b->g;
  size_t room = 2 * (size_t)g->n;
  int *known = ph_mem_new(room, sizeof *known);
  b->failed |= !known;
  for (size_t i = 0; !b->failed && i < room; i++) {
    known[i] = -1;
  }
  int channel = b->failed ? 0 : part_of(b, known, g->result, PH_PART_CHANNEL);
  int port = b->failed ? 0 : part_of(b, known, g->result, PH_PART_PORT);
  g->result = make_pair(b, PH_ROLE_ADD, channel, port);
  ph_mem_free(known);
}

static void mark_dependence(ph_graph *g) {
  for (int i = 0; i < g->n; i++) {
    ph_gnode *n = &g->node[i];
    n->reads_state = i == g->state;
    n->reads_input = i == g->input;
    n->has_param = n->param >= 0;
    for (int a = 0; a < n->nargs; a++) {
      n->reads_state |= g->node[n->arg[a]].reads_state;
      n->reads_input |= g->node[n->arg[a]].reads_input;
      n->has_param |= g->node[n->arg[a]].has_param;
    }
  }
}

/* Nodes were appended in dependency order, but a rewrite may place a parameter node after a state node that does not
 * need it; both phases walk in index order and pick their own kind, so nothing more is needed. */
ph_status ph_graph_build(ph_graph *g, const ph_ir_segment *seg, int64_t rows, bool apart, ph_err *err) {
  *g = (ph_graph){.seg = seg, .state = -1, .input = -1};
  int *uses = ph_mem_new((size_t)seg->nnodes, sizeof *uses);
  int *map = ph_mem_new((size_t)seg->nnodes, sizeof *map);
  int *leaf = ph_mem_new((size_t)seg->nparams + 1, sizeof *leaf);
  builder b = {.g = g, .uses = uses, .rows = rows};
  g->term = ph_mem_new((size_t)seg->nterms, sizeof *g->term);
  g->observe = ph_mem_new((size_t)seg->nobserves, sizeof *g->observe);
  b.failed = !uses || !map || !leaf || !g->term || !g->observe;
  if (!b.failed) {
    count_uses(seg, uses);
    convert_all(&b, leaf, map);
  }
  if (!b.failed) { /* a stream that forgets its state still carries one, and its input still has a cotangent: zero */
    make_leaf(&b, PH_ROLE_STATE, seg->state);
  }
  if (!b.failed && seg->driven) {
    make_leaf(&b, PH_ROLE_INPUT, seg->input);
  }
  ph_mem_free(uses);
  ph_mem_free(map);
  ph_mem_free(leaf);
  if (!b.failed) {
    mark_live(g);
  }
  if (!b.failed && apart && !is_apart(g, g->result)) {
    set_apart(&b);
  }
  if (b.failed) {
    ph_graph_fini(g);
    return ph_code_no_memory(err);
  }
  mark_live(g);
  mark_dependence(g);
  return PH_OK;
}

ph_call ph_graph_call(const ph_graph *g, int node, int64_t samples) {
  const ph_gnode *n = &g->node[node];
  ph_shape in[PH_OP_ARGS];
  for (int a = 0; a < n->nargs; a++) {
    in[a] = g->node[n->arg[a]].shape;
  }
  double attr[PH_OP_ATTRS];
  ph_coefs_at(n->attr, 0, attr);
  return ph_op_call(n->op, in, n->shape, attr, samples);
}

void ph_graph_fini(ph_graph *g) {
  ph_mem_free(g->node);
  ph_mem_free(g->term);
  ph_mem_free(g->observe);
  *g = (ph_graph){0};
}
