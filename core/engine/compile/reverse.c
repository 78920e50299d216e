/* reverse.c - reverse accumulation over a graph, for both phases: where cotangents are and how they add up.
 *
 * A cotangent that only passes through a sum is not copied: it stays an alias until something is added to it or somebody needs it in
 * a slot of its own. The phase decides where that slot lies.
 */
#include <assert.h>

#include "base/mem.h"
#include "engine/compile/code.h"

void ph_reverse_init(ph_reverse *r) {
  r->cot = ph_mem_new((size_t)r->code->g->n, sizeof *r->cot);
  r->code->failed |= !r->cot;
}

void ph_reverse_fini(ph_reverse *r) { ph_mem_free(r->cot); }

bool ph_reverse_wanted(const ph_reverse *r, int node) {
  const ph_gnode *n = &r->code->g->node[node];
  return n->has_param || (n->reads_state && r->with_state) || (n->reads_input && r->with_input);
}

static ph_shape shape_of(const ph_reverse *r, int node) { return r->code->g->node[node].shape; }

int ph_reverse_claim(ph_reverse *r, int node, int *have) {
  ph_cot *c = &r->cot[node];
  *have = c->kind == PH_COT_NOTHING ? -1 : c->slot;
  if (c->kind != PH_COT_OWN) {
    *c = (ph_cot){PH_COT_OWN, r->own(r, node)};
  }
  return c->slot;
}

void ph_reverse_give(ph_reverse *r, int node, ph_coef alpha, int slot) {
  ph_cot *c = &r->cot[node];
  if (!ph_reverse_wanted(r, node)) {
    return;
  }
  if (c->kind == PH_COT_NOTHING && !alpha.table && alpha.value == 1.0) {
    *c = (ph_cot){PH_COT_ALIAS, slot};
    return;
  }
  int have = -1;
  int out = ph_reverse_claim(r, node, &have);
  ph_code_axpby(r->code, r->list, shape_of(r, node), out, alpha, slot, 1.0, have);
}

/* Where an op's adjoint writes the cotangent of `node`, and whether it adds. */
static int target(ph_reverse *r, int node, bool *acc) {
  int have = -1;
  int out = ph_reverse_claim(r, node, &have);
  *acc = have >= 0;
  if (have >= 0 && have != out) {
    ph_code_copy(r->code, r->list, shape_of(r, node), out, have);
  }
  return out;
}

void ph_reverse_settle(ph_reverse *r, int node) {
  bool acc = false;
  int out = target(r, node, &acc);
  if (!acc) {
    ph_code_zero(r->code, r->list, out);
  }
}

static const ph_ins *forward_of(const ph_code *c, int node) {
  for (int i = 0; i < c->fwd.n; i++) {
    if (c->fwd.ins[i].kind == PH_INS_OP && c->fwd.ins[i].out == c->value[node]) {
      return &c->fwd.ins[i];
    }
  }
  assert(!"the forward list has every op");
  return NULL;
}

void ph_reverse_op(ph_reverse *r, int node) {
  const ph_gnode *n = &r->code->g->node[node];
  ph_ins i = *forward_of(r->code, node);
  i.kind = PH_INS_OP_BWD;
  for (int a = 0; a < n->nargs; a++) {
    if (i.weight[a] < 0 && ph_reverse_wanted(r, n->arg[a])) {
      i.gin[a] = target(r, n->arg[a], &i.acc[a]);
    }
  }
  i.a = r->cot[node].slot;
  ph_code_emit(r->code, r->list, &i);
}
