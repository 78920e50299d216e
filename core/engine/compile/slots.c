/* slots.c - slots of the stream phase, and the places they get. */
#include "engine/compile/program.h"

int ph_program_slot(ph_program *p, ph_space space, ph_shape shape) {
  p->slot = ph_code_room(p->slot, p->nslots, &p->slot_room, sizeof *p->slot, &p->code.failed);
  if (p->code.failed) {
    return 0;
  }
  p->slot[p->nslots] = (ph_slot){.space = space, .shape = shape, .base = -1, .mirror = -1, .off = -1, .ld = shape.cols};
  return p->nslots++;
}

int ph_program_view(ph_program *p, int base, int64_t col, ph_shape shape) {
  int s = ph_program_slot(p, p->code.failed ? PH_SP_SCRATCH : p->slot[base].space, shape);
  if (!p->code.failed) {
    p->slot[s].base = base;
    p->slot[s].col = (int)col;
  }
  return s;
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
    s->off = total ? ph_code_take(total, p->tile * s->shape.pos * s->shape.cols) : 0;
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
