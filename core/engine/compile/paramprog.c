/* paramprog.c - parameter phase of a segment: values that depend on parameters alone, and their adjoint.
 *
 * The same program runs for every layer, on blocks of layers at a time. Values the adjoint reads are kept per layer
 * between steps (C, Lambda, the guarded L); matrices the stream multiplies by are computed in place in its pack; all others live
 * in a block's temporary memory. Cotangents start from the
 * stream's weight cotangents and end at the parameters.
 */
#include "base/mem.h"
#include "engine/compile/program.h"

typedef enum pcot_kind { PC_NOTHING, PC_ALIAS, PC_OWN } pcot_kind;

typedef struct pcot {
  pcot_kind kind;
  ph_ploc loc;
} pcot;

typedef struct pbuild {
  ph_pprog *q;
  const ph_graph *g;
  pcot *cot;
} pbuild;

static int64_t size_of(const ph_graph *g, int node) { return g->node[node].shape.rows * g->node[node].shape.cols; }

static ph_ploc place(int64_t *total, ph_pspace space, int64_t size) {
  ph_ploc l = {.space = space, .off = *total, .step = (size + 15) / 16 * 16};
  *total += l.step;
  return l;
}

static ph_pins *emit(ph_pprog *q, ph_plist *list) {
  static ph_pins sink;
  if (list->n == list->room && !q->failed) {
    int room = list->room ? 2 * list->room : 16;
    ph_pins *grown = ph_mem_grow(list->ins, (size_t)list->n * sizeof *grown, (size_t)room, sizeof *grown);
    q->failed = !grown;
    list->ins = grown ? grown : list->ins;
    list->room = grown ? room : list->room;
  }
  if (q->failed) {
    return &sink;
  }
  ph_pins *i = &list->ins[list->n++];
  *i = (ph_pins){.out = {.space = PH_PS_NONE}, .aux = {.space = PH_PS_NONE}, .gout = {.space = PH_PS_NONE}};
  for (int a = 0; a < PH_OP_ARGS; a++) {
    i->gin[a].space = PH_PS_NONE;
  }
  return i;
}

/* ---- forward ---- */

static bool kept(const ph_graph *g, int node) {
  if ((g->node[node].op->need & PH_NEED_OUT) != 0) {
    return true;
  }
  for (int i = node + 1; i < g->n; i++) {
    const ph_gnode *n = &g->node[i];
    for (int a = 0; n->live && ph_graph_is_param(g, i) && a < n->nargs; a++) {
      if (n->arg[a] == node && (n->op->need & (1U << a)) != 0) {
        return true;
      }
    }
  }
  return false;
}

/* A matrix that the stream multiplies by is computed where the product's natural form lies, when it is not a parameter. */
static bool place_in_pack(const ph_program *p, int node, ph_ploc *out) {
  for (int i = 0; i < p->nproducts; i++) {
    const ph_product *q = &p->product[i];
    int64_t row = 0;
    for (int m = 0; m < q->members; m++) {
      if (p->weight[q->matrix[m]].node == node) {
        *out = (ph_ploc){.space = PH_PS_PACK, .off = q->wn + row * q->K, .step = p->pack};
        return true;
      }
      row += p->weight[q->matrix[m]].rows;
    }
  }
  return false;
}

static void describe_call(const ph_graph *g, int node, ph_pins *i, const ph_pprog *q) {
  const ph_gnode *n = &g->node[node];
  i->op = n->op;
  i->nargs = n->nargs;
  i->out = q->value[node];
  i->aux = q->aux[node];
  i->out_shape = n->shape;
  memcpy(i->attr, n->attr, sizeof i->attr);
  for (int a = 0; a < n->nargs; a++) {
    i->in[a] = q->value[n->arg[a]];
    i->in_shape[a] = g->node[n->arg[a]].shape;
  }
}

/* What the op takes besides its operands: scratch, and the place of what it keeps for its adjoint. */
static void needs(pbuild *b, int node) {
  ph_pprog *q = b->q;
  const ph_gnode *n = &b->g->node[node];
  ph_call c = ph_graph_call(b->g, node, 1);
  ph_needs need = ph_op_needs(n->op, &c);
  q->op_scratch = need.scratch > q->op_scratch ? need.scratch : q->op_scratch;
  q->flops += (1 + n->op->flops_bwd) * need.flops;
  if (need.aux) {
    q->aux[node] = place(&q->keep, PH_PS_KEEP, n->shape.rows * need.aux);
  }
}

static void forward(pbuild *b) {
  ph_pprog *q = b->q;
  const ph_graph *g = b->g;
  for (int i = 0; i < g->n; i++) {
    const ph_gnode *n = &g->node[i];
    if (!n->live || !ph_graph_is_param(g, i)) {
      continue;
    }
    if (n->param >= 0) {
      q->value[i] = (ph_ploc){.space = PH_PS_LEAF, .param = n->param, .step = size_of(g, i)};
      continue;
    }
    if (!place_in_pack(q->stream, i, &q->value[i])) {
      bool keep = kept(g, i);
      q->value[i] = place(keep ? &q->keep : &q->temp, keep ? PH_PS_KEEP : PH_PS_TEMP, size_of(g, i));
    }
    needs(b, i);
    describe_call(g, i, emit(q, &q->fwd), q);
  }
}

/* ---- adjoint ---- */

/* cot(node) += loc */
static void give(pbuild *b, int node, ph_ploc loc) {
  pcot *c = &b->cot[node];
  if (c->kind == PC_NOTHING) {
    *c = (pcot){PC_ALIAS, loc};
    return;
  }
  ph_ploc out = c->kind == PC_OWN ? c->loc : place(&b->q->temp, PH_PS_TEMP, size_of(b->g, node));
  ph_pins *i = emit(b->q, &b->q->bwd);
  i->in[0] = loc;
  i->in[1] = c->loc;
  i->out = out;
  i->out_shape = b->g->node[node].shape;
  *c = (pcot){PC_OWN, out};
}

static ph_ploc target(pbuild *b, int node, bool *acc) {
  pcot *c = &b->cot[node];
  *acc = c->kind != PC_NOTHING;
  if (c->kind == PC_OWN) {
    return c->loc;
  }
  ph_ploc out = place(&b->q->temp, PH_PS_TEMP, size_of(b->g, node));
  if (c->kind == PC_ALIAS) {
    ph_pins *i = emit(b->q, &b->q->bwd);
    i->in[0] = c->loc;
    i->in[1].space = PH_PS_NONE;
    i->out = out;
    i->out_shape = b->g->node[node].shape;
  }
  *c = (pcot){PC_OWN, out};
  return out;
}

static void node_back(pbuild *b, int node) {
  const ph_gnode *n = &b->g->node[node];
  ph_pins call = {0};
  describe_call(b->g, node, &call, b->q);
  call.gout = b->cot[node].loc;
  for (int a = 0; a < PH_OP_ARGS; a++) {
    call.gin[a].space = PH_PS_NONE;
  }
  for (int a = 0; a < n->nargs; a++) {
    call.gin[a] = target(b, n->arg[a], &call.acc[a]);
  }
  *emit(b->q, &b->q->bwd) = call;
}

static void backward(pbuild *b) {
  const ph_program *p = b->q->stream;
  for (int w = 0; w < p->nweights; w++) {
    ph_ploc loc = {.space = PH_PS_WGRAD, .off = p->weight[w].grad, .step = p->grad};
    give(b, p->weight[w].node, loc);
  }
  for (int i = b->g->n - 1; i >= 0; i--) {
    const ph_gnode *n = &b->g->node[i];
    if (n->live && ph_graph_is_param(b->g, i) && n->param < 0 && n->op->bwd && b->cot[i].kind != PC_NOTHING) {
      node_back(b, i);
    }
  }
  for (int i = 0; i < b->g->n; i++) {
    int leaf = b->g->node[i].param;
    if (leaf >= 0 && b->cot[i].kind != PC_NOTHING) {
      b->q->leaf_cot[leaf] = b->cot[i].loc;
    }
  }
}

ph_status ph_pprog_build(ph_pprog *q, const ph_program *stream, ph_err *err) {
  *q = (ph_pprog){.stream = stream};
  pbuild b = {.q = q, .g = &stream->graph};
  size_t n = (size_t)stream->graph.n;
  int leaves = stream->seg->nparams;
  q->value = ph_mem_new(n, sizeof *q->value);
  q->aux = ph_mem_new(n, sizeof *q->aux);
  q->leaf_cot = ph_mem_new((size_t)leaves + 1, sizeof *q->leaf_cot);
  b.cot = ph_mem_new(n, sizeof *b.cot);
  q->failed = !q->value || !q->aux || !q->leaf_cot || !b.cot;
  if (!q->failed) {
    for (size_t i = 0; i < n; i++) {
      q->aux[i].space = PH_PS_NONE;
    }
    for (int i = 0; i < leaves; i++) {
      q->leaf_cot[i].space = PH_PS_NONE;
    }
    forward(&b);
    backward(&b);
  }
  ph_mem_free(b.cot);
  if (q->failed) {
    ph_pprog_fini(q);
    return ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model");
  }
  return PH_OK;
}

void ph_pprog_fini(ph_pprog *q) {
  ph_mem_free(q->fwd.ins);
  ph_mem_free(q->bwd.ins);
  ph_mem_free(q->value);
  ph_mem_free(q->aux);
  ph_mem_free(q->leaf_cot);
  memset(q, 0, sizeof *q);
}
