/* describe.c - the programs of a segment as text for a person: what runs once a step, what runs for every sample, and
 * where values lie. */
#include <stdio.h>

#include "engine/compile/program.h"

static const char *slot_name(const ph_program *q, int slot, char buf[48]) {
  static const char *const space[PH_SP_COUNT] = {"tape", "next", "tmp", "g",     "g_prev",
                                                 "in",   "g_in", "out", "g_out", "share"};
  if (slot < 0) {
    return "-";
  }
  const ph_slot *s = &q->slot[slot];
  if (s->base >= 0) {
    snprintf(buf, 48, "%s%d[%d:%d]", space[s->space], s->base, s->col, s->col + (int)s->shape.cols);
  } else if (slot == q->state) {
    snprintf(buf, 48, "state");
  } else if (s->space == PH_SP_NEXT) {
    snprintf(buf, 48, "state'");
  } else {
    snprintf(buf, 48, "%s%d", space[s->space], slot);
  }
  return buf;
}

static void product_text(ph_text *s, const ph_program *q, const ph_ins *i, const char *form) {
  char a[48];
  char d[48];
  char out[48];
  const ph_product *m = &q->product[i->product];
  ph_text_put(s, form, slot_name(q, i->out, out), i->d >= 0 ? slot_name(q, i->d, d) : "0", slot_name(q, i->a, a),
              (long long)m->N, (long long)m->K, i->product + 1,
              i->kind == PH_INS_PRODUCT && m->wb >= 0 ? " + bias" : "");
}

/* A number, or the table that has one for each iteration. */
static const char *coef_name(const ph_program *q, ph_coef c, char buf[48]) {
  snprintf(buf, 48, "%g", c.value);
  for (int i = 0; i < q->seg->tables.n; i++) {
    if (q->seg->tables.at[i].value == c.table) {
      snprintf(buf, 48, "@%s", q->seg->tables.at[i].name);
    }
  }
  return buf;
}

static void ins_text(ph_text *s, const ph_program *q, const ph_ins *i) {
  char a[48];
  char b[48];
  char out[48];
  switch (i->kind) {
  case PH_INS_PRODUCT: product_text(s, q, i, "      %-14s = %s + %s * W^T   (%lld x %lld, product %d%s)\n"); break;
  case PH_INS_DGRAD: product_text(s, q, i, "      %-14s = %s + %s * W     (%lld x %lld, product %d%s)\n"); break;
  case PH_INS_WGRAD:
    ph_text_put(s, "      dW product %-3d += %s^T * %s\n", i->product + 1, slot_name(q, i->a, a),
                slot_name(q, i->b, b));
    break;
  case PH_INS_COLSUM: ph_text_put(s, "      d(bias)        += sum over rows of %s\n", slot_name(q, i->a, a)); break;
  case PH_INS_AXPBY:
    ph_text_put(s, "      %-14s = %s %s", slot_name(q, i->out, out), coef_name(q, i->alpha, b), slot_name(q, i->a, a));
    ph_text_put(s, i->b >= 0 ? " + %g %s\n" : "\n", i->beta, slot_name(q, i->b, b));
    break;
  case PH_INS_ZERO: ph_text_put(s, "      %-14s = 0\n", slot_name(q, i->out, out)); break;
  case PH_INS_OP:
    ph_text_put(s, "      %-14s = %s(%s)\n", slot_name(q, i->out, out), i->op->name, slot_name(q, i->in[0], a));
    break;
  case PH_INS_OP_BWD:
    ph_text_put(s, "      %-14s = adjoint of %s from %s\n", slot_name(q, i->gin[0], out), i->op->name,
                slot_name(q, i->a, a));
    break;
  }
}

static void pslot_text(ph_text *s, const ph_pprog *q, int slot) {
  static const char *const space[] = {
      [PH_PS_KEEP] = "kept", [PH_PS_PACK] = "pack", [PH_PS_TEMP] = "tmp", [PH_PS_WGRAD] = "dW"};
  if (slot < 0) {
    return;
  }
  const ph_pslot *l = &q->slot[slot];
  if (l->space == PH_PS_LEAF) {
    ph_text_put(s, " %s.%s", q->stream->seg->name, q->stream->seg->param[l->param].name);
  } else {
    ph_text_put(s, " %s@%lld", space[l->space], (long long)l->off);
  }
}

static void plist_text(ph_text *s, const ph_pprog *q, const ph_list *list) {
  for (int n = 0; n < list->n; n++) {
    const ph_ins *i = &list->ins[n];
    bool back = i->kind == PH_INS_OP_BWD;
    ph_text_put(s, "      %s%s", back ? "adjoint of " : "", i->op ? i->op->name : "sum");
    pslot_text(s, q, i->a);
    pslot_text(s, q, i->b);
    for (int a = 0; a < i->nargs && !back; a++) {
      pslot_text(s, q, i->in[a]);
    }
    ph_text_put(s, "  ->");
    for (int a = 0; a < i->nargs && back; a++) {
      pslot_text(s, q, i->gin[a]);
    }
    pslot_text(s, q, back ? -1 : i->out);
    ph_text_put(s, "   (%lld x %lld)\n", (long long)i->out_shape.rows, (long long)i->out_shape.cols);
  }
}

void ph_pprog_describe(const ph_pprog *q, ph_text *s) {
  ph_text_put(s, "    forward\n");
  plist_text(s, q, &q->code.fwd);
  ph_text_put(s, "    adjoint\n");
  plist_text(s, q, &q->bwd);
}

static void list_text(ph_text *s, const ph_program *q, const ph_list *list) {
  for (int i = 0; i < list->n; i++) {
    ins_text(s, q, &list->ins[i]);
  }
}

void ph_program_describe(const ph_program *q, ph_text *s) {
  ph_text_put(s, "    forward\n");
  list_text(s, q, &q->code.fwd);
  ph_text_put(s, "    backward\n");
  list_text(s, q, &q->bwd.list);
}
