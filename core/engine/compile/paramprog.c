/* paramprog.c - parameter phase of a segment: values that depend on parameters alone, and their adjoint.
 *
 * The same program runs for every layer, on blocks of layers at a time. Values the adjoint reads are kept per layer between
 * steps (C, Lambda, the guarded L); matrices the stream multiplies by are computed in place in its pack; all others live in
 * a block's temporary memory. Cotangents start from the stream's weight cotangents and end at the parameters.
 */
#include "base/mem.h"
#include "engine/compile/program.h"

static int64_t size_of(const ph_graph *g, int node) { return g->node[node].shape.rows * g->node[node].shape.cols; }

static int new_slot(ph_pprog *q, ph_pslot slot) {
  q->slot = ph_code_room(q->slot, q->nslots, &q->slot_room, sizeof *q->slot, &q->code.failed);
  if (q->code.failed) {
    return 0;
  }
  q->slot[q->nslots] = slot;
  return q->nslots++;
}

/* A slot of `size` elements a layer at the end of a space whose total this is. */
static int take_slot(ph_pprog *q, ph_pspace space, int64_t *total, int64_t size) {
  int64_t at = ph_code_take(total, size);
  return new_slot(q, (ph_pslot){.space = space, .off = at, .step = *total - at});
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

/* A slot where the product's natural form of a matrix lies; -1 when no product of the stream multiplies by it. */
static int pack_slot(ph_pprog *q, int node) {
  const ph_program *p = q->stream;
  for (int i = 0; i < p->nproducts; i++) {
    const ph_product *product = &p->product[i];
    int64_t row = 0;
    for (int m = 0; m < product->members; m++) {
      const ph_weight *w = &p->weight[product->matrix[m]];
      if (w->node == node) {
        return new_slot(q, (ph_pslot){.space = PH_PS_PACK, .off = product->wn + row * product->K, .step = p->pack});
      }
      row += w->rows;
    }
  }
  return -1;
}

static int value_slot(ph_pprog *q, int node) {
  const ph_graph *g = q->code.g;
  int slot = pack_slot(q, node);
  if (slot >= 0) {
    return slot;
  }
  return kept(g, node) ? take_slot(q, PH_PS_KEEP, &q->keep, size_of(g, node))
                       : take_slot(q, PH_PS_TEMP, &q->temp, size_of(g, node));
}

static void forward_op(ph_pprog *q, int node) {
  const ph_gnode *n = &q->code.g->node[node];
  q->code.value[node] = value_slot(q, node);
  ph_needs need = ph_code_needs(&q->code, node, 1);
  q->flops += (1 + n->op->flops_bwd) * need.flops;
  if (need.aux) {
    q->code.aux[node] = take_slot(q, PH_PS_KEEP, &q->keep, n->shape.rows * need.aux);
  }
  ph_ins i = ph_code_call(&q->code, node);
  ph_code_emit(&q->code, &q->code.fwd, &i);
}

static void forward(ph_pprog *q) {
  const ph_graph *g = q->code.g;
  for (int i = 0; i < g->n && !q->code.failed; i++) {
    const ph_gnode *n = &g->node[i];
    if (!n->live || !ph_graph_is_param(g, i)) {
      continue;
    }
    if (n->op) {
      forward_op(q, i);
    } else {
      q->code.value[i] = new_slot(q, (ph_pslot){.space = PH_PS_LEAF, .param = n->param, .step = size_of(g, i)});
    }
  }
}

/* ---- adjoint ---- */

typedef struct back {
  ph_reverse r; /* first: own_slot gets its address */
  ph_pprog *q;
} back;

static int own_slot(ph_reverse *r, int node) {
  ph_pprog *q = ((back *)r)->q;
  return take_slot(q, PH_PS_TEMP, &q->temp, size_of(q->code.g, node));
}

static void backward(ph_pprog *q) {
  const ph_program *p = q->stream;
  const ph_graph *g = q->code.g;
  back k = {.r = {.code = &q->code, .list = &q->bwd, .own = own_slot}, .q = q};
  ph_reverse_init(&k.r);
  for (int w = 0; w < p->nweights && !q->code.failed; w++) {
    int left = new_slot(q, (ph_pslot){.space = PH_PS_WGRAD, .off = p->weight[w].grad, .step = p->grad});
    ph_reverse_give(&k.r, p->weight[w].node, ph_coef_of(1.0), left);
  }
  for (int i = g->n - 1; i >= 0 && !q->code.failed; i--) {
    const ph_gnode *n = &g->node[i];
    if (n->live && ph_graph_is_param(g, i) && n->op && k.r.cot[i].kind != PH_COT_NOTHING) {
      ph_reverse_op(&k.r, i);
    }
  }
  for (int i = 0; i < g->n && !q->code.failed; i++) {
    if (g->node[i].param >= 0 && k.r.cot[i].kind != PH_COT_NOTHING) {
      q->leaf_cot[g->node[i].param] = k.r.cot[i].slot;
    }
  }
  ph_reverse_fini(&k.r);
}

ph_status ph_pprog_build(ph_pprog *q, const ph_program *stream, ph_err *err) {
  *q = (ph_pprog){.stream = stream};
  ph_code_init(&q->code, &stream->graph);
  q->leaf_cot = ph_mem_new((size_t)stream->seg->nparams, sizeof *q->leaf_cot);
  q->code.failed |= !q->leaf_cot;
  for (int i = 0; i < stream->seg->nparams && !q->code.failed; i++) {
    q->leaf_cot[i] = -1;
  }
  forward(q);
  backward(q);
  if (q->code.failed) {
    ph_pprog_fini(q);
    return ph_code_no_memory(err);
  }
  return PH_OK;
}

void ph_pprog_fini(ph_pprog *q) {
  ph_code_fini(&q->code);
  ph_mem_free(q->bwd.ins);
  ph_mem_free(q->slot);
  ph_mem_free(q->leaf_cot);
  memset(q, 0, sizeof *q);
}
