/* code.c - instructions and the lists they are in. */
#include "engine/compile/code.h"

#include "base/mem.h"

enum {
  ROOM_FIRST = 16, /* elements of an array when it first grows */
  PLACE = 16       /* elements that places start at multiples of */
};

void *ph_code_room(void *array, int used, int *room, size_t size, bool *failed) {
  if (used < *room || *failed) {
    return array;
  }
  int more = *room ? 2 * *room : ROOM_FIRST;
  void *grown = ph_mem_grow(array, (size_t)used * size, (size_t)more, size);
  *failed |= !grown;
  *room = grown ? more : *room;
  return grown ? grown : array;
}

int64_t ph_code_take(int64_t *total, int64_t n) {
  int64_t at = *total;
  *total += (n + PLACE - 1) / PLACE * PLACE;
  return at;
}

ph_status ph_code_no_memory(ph_err *err) {
  return ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model");
}

void ph_code_init(ph_code *c, const ph_graph *g) {
  size_t n = (size_t)g->n;
  *c = (ph_code){.g = g, .value = ph_mem_new(n, sizeof *c->value), .aux = ph_mem_new(n, sizeof *c->aux)};
  c->failed = !c->value || !c->aux;
  for (size_t i = 0; i < n && !c->failed; i++) {
    c->value[i] = c->aux[i] = -1;
  }
}

void ph_code_fini(ph_code *c) {
  ph_mem_free(c->value);
  ph_mem_free(c->aux);
  ph_mem_free(c->fwd.ins);
}

ph_ins ph_ins_of(ph_ins_kind kind) {
  ph_ins i = {.kind = kind, .a = -1, .b = -1, .d = -1, .out = -1, .product = -1, .aux = -1};
  for (int k = 0; k < PH_OP_ARGS; k++) {
    i.in[k] = i.weight[k] = i.gin[k] = -1;
  }
  return i;
}

ph_ins ph_code_call(const ph_code *c, int node) {
  const ph_gnode *n = &c->g->node[node];
  ph_ins i = ph_ins_of(PH_INS_OP);
  i.op = n->op;
  i.nargs = n->nargs;
  i.out = c->value[node];
  i.aux = c->aux[node];
  i.out_shape = n->shape;
  memcpy(i.attr, n->attr, sizeof i.attr);
  for (int a = 0; a < n->nargs; a++) {
    i.in[a] = c->value[n->arg[a]];
    i.in_shape[a] = c->g->node[n->arg[a]].shape;
  }
  return i;
}

void ph_code_emit(ph_code *c, ph_list *list, const ph_ins *i) {
  list->ins = ph_code_room(list->ins, list->n, &list->room, sizeof *list->ins, &c->failed);
  if (!c->failed) {
    list->ins[list->n++] = *i;
  }
}

void ph_code_axpby(ph_code *c, ph_list *list, ph_shape shape, int out, ph_coef alpha, int a, double beta, int b) {
  ph_ins i = ph_ins_of(PH_INS_AXPBY);
  i.alpha = alpha;
  i.a = a;
  i.beta = beta;
  i.b = b;
  i.out = out;
  i.out_shape = shape;
  ph_code_emit(c, list, &i);
}

void ph_code_copy(ph_code *c, ph_list *list, ph_shape shape, int out, int a) {
  ph_code_axpby(c, list, shape, out, ph_coef_of(1.0), a, 0.0, -1);
}

void ph_code_zero(ph_code *c, ph_list *list, int out) {
  ph_ins i = ph_ins_of(PH_INS_ZERO);
  i.out = out;
  ph_code_emit(c, list, &i);
}

ph_needs ph_code_needs(ph_code *c, int node, int64_t samples) {
  ph_call call = ph_graph_call(c->g, node, samples);
  ph_needs need = ph_op_needs(&call);
  c->op_scratch = need.scratch > c->op_scratch ? need.scratch : c->op_scratch;
  return need;
}
