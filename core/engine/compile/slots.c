/* slots.c - what a program is made of: growing arrays, slots, instructions, and the places slots get. */
#include "base/mem.h"
#include "engine/compile/program.h"

/* ---- growing arrays ---- */

void *ph_program_room(ph_program *p, void *array, int used, int *room, size_t size) {
  if (used < *room || p->failed) {
    return array;
  }
  int more = *room ? 2 * *room : 16;
  void *grown = ph_mem_grow(array, (size_t)used * size, (size_t)more, size);
  p->failed |= !grown;
  *room = grown ? more : *room;
  return grown ? grown : array;
}

int ph_program_slot(ph_program *p, ph_space space, ph_shape shape) {
  p->slot = ph_program_room(p, p->slot, p->nslots, &p->slot_room, sizeof *p->slot);
  if (p->failed) {
    return 0;
  }
  p->slot[p->nslots] = (ph_slot){.space = space, .shape = shape, .base = -1, .mirror = -1, .off = -1, .ld = shape.cols};
  return p->nslots++;
}

int ph_program_view(ph_program *p, int base, int64_t col, ph_shape shape) {
  int s = ph_program_slot(p, p->failed ? PH_SP_SCRATCH : p->slot[base].space, shape);
  if (!p->failed) {
    p->slot[s].base = base;
    p->slot[s].col = (int)col;
  }
  return s;
}

ph_ins *ph_program_emit(ph_program *p, ph_list *list, ph_ins_kind kind) {
  static ph_ins sink;
  list->ins = ph_program_room(p, list->ins, list->n, &list->room, sizeof *list->ins);
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

void ph_program_axpby(ph_program *p, ph_list *list, double alpha, int a, double beta, int b, int out) {
  ph_ins *i = ph_program_emit(p, list, PH_INS_AXPBY);
  i->alpha = alpha;
  i->a = a;
  i->beta = beta;
  i->b = b;
  i->out = out;
  if (!p->failed) {
    i->out_shape = p->slot[out].shape;
  }
}

static int64_t aligned(int64_t n) { return (n + 15) / 16 * 16; }

int64_t ph_program_take(int64_t *total, int64_t n) {
  int64_t at = *total;
  *total += aligned(n);
  return at;
}

/* ---- places ---- */

static int64_t *space_total(ph_program *p, ph_space s) {
  switch (s) {
  case PH_SP_TAPE: return &p->record;
  case PH_SP_SCRATCH: return &p->scratch;
  case PH_SP_COT:
  case PH_SP_COTNEXT: return &p->cot;
  default: return NULL; /* one slot only, at the start of its space */
  }
}

void ph_program_place(ph_program *p) {
  for (int i = 0; i < p->nslots; i++) {
    ph_slot *s = &p->slot[i];
    if (s->base >= 0 || s->mirror >= 0) {
      continue;
    }
    int64_t *total = space_total(p, s->space);
    s->off = total ? ph_program_take(total, p->tile * s->shape.pos * s->shape.cols) : 0;
  }
  for (int pass = 0; pass < 2; pass++) { /* views, then mirrors of views */
    for (int i = 0; i < p->nslots; i++) {
      ph_slot *s = &p->slot[i];
      int of = pass == 0 ? s->base : s->mirror;
      if (of >= 0) {
        s->off = p->slot[of].off + (pass == 0 ? s->col : 0);
        s->ld = p->slot[of].ld;
      }
    }
  }
}
