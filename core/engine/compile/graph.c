/* graph.c - a segment as a working graph, rewritten into the form that compiles well.
 *
 * Rules, each exact in real arithmetic:
 *   a - b                 ->  a + (-1) b
 *   c (M x)               ->  (c M) x          when M x has no other use: the factor moves into the parameter phase
 *   c (x + b)             ->  c x + c b        likewise
 *   c1 (c2 x)             ->  (c1 c2) x
 *   A (B x)               ->  (A B) x          when rows > 2d (docs/laws.md, 4.4) and the product is not larger
 */
#include <string.h>

#include "base/mem.h"
#include "engine/compile/program.h"

typedef struct builder {
  ph_graph *g;
  const int *uses; /* of the segment's nodes */
  int64_t rows;
  bool failed;
} builder;

static int add_node(builder *b, ph_gnode n) {
  ph_graph *g = b->g;
  if (g->n == g->room) {
    int room = g->room ? 2 * g->room : 64;
    ph_gnode *grown = ph_mem_grow(g->node, (size_t)g->n * sizeof *grown, (size_t)room, sizeof *grown);
    if (!grown) {
      b->failed = true;
      return 0;
    }
    g->node = grown;
    g->room = room;
  }
  g->node[g->n] = n;
  return g->n++;
}

static int make(builder *b, const char *op, int nargs, const int *arg, const double *attr) {
  ph_gnode n = {.op = ph_op_find(op), .param = -1, .nargs = nargs};
  ph_shape in[PH_OP_ARGS];
  for (int i = 0; i < nargs; i++) {
    n.arg[i] = arg[i];
    in[i] = b->g->node[arg[i]].shape;
  }
  if (attr) {
    memcpy(n.attr, attr, sizeof n.attr);
  }
  ph_err err;
  if (n.op->shape(n.op, in, n.attr, &n.shape, &err)) {
    b->failed = true; /* cannot happen: the rewrites keep shapes */
    return 0;
  }
  return add_node(b, n);
}

static int make_scale(builder *b, double c, int x, bool alone);

/* A (B x) -> (A B) x when it pays. `alone`: B x has no other use. */
static int make_apply(builder *b, int A, int x, bool alone) {
  const ph_gnode *n = &b->g->node[x];
  if (alone && ph_graph_is_op(b->g, x, "apply")) {
    ph_shape a = b->g->node[A].shape;
    ph_shape m = b->g->node[n->arg[0]].shape;
    int64_t d = a.rows > m.cols ? a.rows : m.cols;
    if (b->rows > 2 * d && a.rows * m.cols <= m.rows * (a.rows + m.cols)) {
      int inner = n->arg[1];
      int AB = make(b, "matmul", 2, (int[]){A, n->arg[0]}, NULL);
      return make_apply(b, AB, inner, false);
    }
  }
  return make(b, "apply", 2, (int[]){A, x}, NULL);
}

static int make_scale(builder *b, double c, int x, bool alone) {
  const ph_gnode n = b->g->node[x];
  if (alone && ph_graph_is_op(b->g, x, "scale")) {
    return make_scale(b, c * n.attr[0], n.arg[0], false);
  }
  if (alone && ph_graph_is_op(b->g, x, "apply")) {
    return make(b, "apply", 2, (int[]){make_scale(b, c, n.arg[0], false), n.arg[1]}, NULL);
  }
  if (alone && ph_graph_is_op(b->g, x, "bias")) {
    int y = make_scale(b, c, n.arg[0], true);
    return make(b, "bias", 2, (int[]){y, make_scale(b, c, n.arg[1], false)}, NULL);
  }
  return make(b, "scale", 1, &x, (double[PH_OP_ATTRS]){c});
}

static int convert(builder *b, const ph_ir_node *n, const int *arg, const bool *alone) {
  const char *name = n->op->name;
  if (strcmp(name, "sub") == 0) {
    return make(b, "add", 2, (int[]){arg[0], make_scale(b, -1.0, arg[1], alone[1])}, NULL);
  }
  if (strcmp(name, "scale") == 0) {
    return make_scale(b, n->attr[0], arg[0], alone[0]);
  }
  if (strcmp(name, "apply") == 0) {
    return make_apply(b, arg[0], arg[1], alone[1]);
  }
  if (n->nargs == 0) {
    int id = add_node(b, (ph_gnode){.op = n->op, .param = -1, .shape = n->shape});
    *(strcmp(name, "state") == 0 ? &b->g->state : &b->g->input) = id;
    return id;
  }
  return make(b, name, n->nargs, arg, n->attr);
}

/* Sharing: a leaf or an op that is already there is used again. */
static int convert_shared(builder *b, const ph_ir_node *n, const int *arg, const bool *alone) {
  if (n->nargs == 0) {
    int have = strcmp(n->op->name, "state") == 0 ? b->g->state : b->g->input;
    if (have >= 0) {
      return have;
    }
  }
  return convert(b, n, arg, alone);
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
    map[i] = convert_shared(b, n, arg, alone);
  }
  b->g->result = map[seg->result];
  b->g->read = seg->read >= 0 ? map[seg->read] : -1;
}

static void use(ph_graph *g, int i, int user) {
  g->node[i].uses++;
  g->node[i].user = user;
}

static void mark_live(ph_graph *g) {
  for (int i = 0; i < g->n; i++) {
    g->node[i].user = -1;
  }
  g->node[g->result].live = true;
  use(g, g->result, -1);
  if (g->read >= 0) {
    g->node[g->read].live = true;
    use(g, g->read, -1);
  }
  for (int i = g->n - 1; i >= 0; i--) {
    for (int a = 0; g->node[i].live && a < g->node[i].nargs; a++) {
      g->node[g->node[i].arg[a]].live = true;
      use(g, g->node[i].arg[a], i);
    }
  }
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
ph_status ph_graph_build(ph_graph *g, const ph_ir_segment *seg, int64_t rows, ph_err *err) {
  *g = (ph_graph){.seg = seg, .state = -1, .input = -1};
  int *uses = ph_mem_new((size_t)seg->nnodes, sizeof *uses);
  int *map = ph_mem_new((size_t)seg->nnodes, sizeof *map);
  int *leaf = ph_mem_new((size_t)seg->nparams + 1, sizeof *leaf);
  builder b = {.g = g, .uses = uses, .rows = rows};
  b.failed = !uses || !map || !leaf;
  if (!b.failed) {
    count_uses(seg, uses);
    convert_all(&b, leaf, map);
  }
  if (!b.failed && g->state < 0) { /* a stream that forgets its state still carries one, */
    g->state = add_node(&b, (ph_gnode){.op = ph_op_find("state"), .param = -1, .shape = seg->state});
  }
  if (!b.failed && g->input < 0 && seg->kind == PH_SEG_TIME) { /* and its input still has a cotangent: zero */
    g->input =
        add_node(&b, (ph_gnode){.op = ph_op_find("input"), .param = -1, .shape = ph_shape_sample(1, 1, seg->in.cols)});
  }
  ph_mem_free(uses);
  ph_mem_free(map);
  ph_mem_free(leaf);
  if (b.failed) {
    ph_graph_fini(g);
    return ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model");
  }
  mark_live(g);
  mark_dependence(g);
  return PH_OK;
}

void ph_graph_fini(ph_graph *g) {
  ph_mem_free(g->node);
  g->node = NULL;
  g->n = 0;
}
