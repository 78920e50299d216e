/* frame.c - the instructions of the stream phase, run on one tile in one iteration. */
#include "engine/run/frame.h"

static void run_product(const ph_frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = ph_frame_rows(f, f->segment->prog.slot[i->out].shape);
  f->p->k->gemm(rows, q->N, q->K, ph_frame_at(f, i->a), ph_frame_stride(f, i->a), 1, ph_plan_at(f->p, f->pack, q->wt),
                q->N, i->d >= 0 ? ph_frame_at(f, i->d) : NULL, i->d >= 0 ? ph_frame_stride(f, i->d) : 0,
                q->wb >= 0 ? ph_plan_at(f->p, f->pack, q->wb) : NULL, ph_frame_at(f, i->out),
                ph_frame_stride(f, i->out));
}

static void run_weight_grad(const ph_frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = ph_frame_rows(f, f->segment->prog.slot[i->b].shape);
  char *g = ph_plan_at(f->p, f->grad, q->grad);
  f->p->k->gemm(q->N, q->K, rows, ph_frame_at(f, i->a), 1, ph_frame_stride(f, i->a), ph_frame_at(f, i->b),
                ph_frame_stride(f, i->b), f->acc ? g : NULL, q->K, NULL, g, q->K);
}

static void run_data_grad(const ph_frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = ph_frame_rows(f, f->segment->prog.slot[i->out].shape);
  f->p->k->gemm(rows, q->K, q->N, ph_frame_at(f, i->a), ph_frame_stride(f, i->a), 1, ph_plan_at(f->p, f->pack, q->wn),
                q->K, i->d >= 0 ? ph_frame_at(f, i->d) : NULL, i->d >= 0 ? ph_frame_stride(f, i->d) : 0, NULL,
                ph_frame_at(f, i->out), ph_frame_stride(f, i->out));
}

static void run_axpby(const ph_frame *f, const ph_ins *i) {
  f->p->k->axpby(ph_frame_rows(f, i->out_shape), i->out_shape.cols, ph_coef_at(i->alpha, f->it), ph_frame_at(f, i->a),
                 ph_frame_stride(f, i->a), i->beta, i->b >= 0 ? ph_frame_at(f, i->b) : NULL,
                 i->b >= 0 ? ph_frame_stride(f, i->b) : 0, ph_frame_at(f, i->out), ph_frame_stride(f, i->out));
}

static void run_colsum(const ph_frame *f, const ph_ins *i) {
  f->p->k->colsum(ph_frame_rows(f, i->out_shape), i->out_shape.cols, ph_frame_at(f, i->a), ph_frame_stride(f, i->a),
                  ph_plan_at(f->p, f->grad, f->segment->prog.weight[i->weight[0]].grad), f->acc);
}

void ph_frame_clear(const ph_frame *f, int slot) {
  ph_shape s = f->segment->prog.slot[slot].shape;
  char *at = ph_frame_at(f, slot);
  for (int64_t r = 0; r < ph_frame_rows(f, s); r++) {
    memset(ph_plan_at(f->p, at, r * ph_frame_stride(f, slot)), 0, (size_t)s.cols * f->p->size);
  }
}

static ph_opnd operand(const ph_frame *f, int slot) {
  return (ph_opnd){ph_frame_at(f, slot), ph_frame_stride(f, slot), 0};
}

static ph_opnd argument(const ph_frame *f, const ph_ins *i, int a) {
  if (i->weight[a] < 0) {
    return operand(f, i->in[a]);
  }
  const ph_weight *w = &f->segment->prog.weight[i->weight[a]];
  return (ph_opnd){ph_plan_at(f->p, f->pack, w->pack), w->cols, 0};
}

/* Where the cotangent of an argument goes: a weight's into the group's gradient, which other tiles may have filled. */
static void cotangent(const ph_frame *f, const ph_ins *i, int a, ph_call *c) {
  if (i->weight[a] >= 0) {
    const ph_weight *w = &f->segment->prog.weight[i->weight[a]];
    c->gin[a] = (ph_opnd){ph_plan_at(f->p, f->grad, w->grad), w->cols, 0};
    c->acc[a] = f->acc;
  } else if (i->gin[a] >= 0) {
    c->gin[a] = operand(f, i->gin[a]);
    c->acc[a] = i->acc[a];
  }
}

static void run_op(const ph_frame *f, const ph_ins *i) {
  bool back = i->kind == PH_INS_OP_BWD;
  double attr[PH_OP_ATTRS];
  ph_coefs_at(i->attr, f->it, attr);
  ph_call c = ph_op_call(i->op, i->in_shape, i->out_shape, attr, f->t->rows);
  c.k = f->p->k;
  c.scratch = f->t->w->op;
  c.out = operand(f, i->out);
  if (i->aux >= 0) {
    c.aux = operand(f, i->aux);
  }
  for (int a = 0; a < i->nargs; a++) {
    c.in[a] = argument(f, i, a);
    if (back) {
      cotangent(f, i, a, &c);
    }
  }
  if (back) {
    c.gout = operand(f, i->a);
  }
  (back ? i->op->bwd : i->op->fwd)(&c);
}

void ph_frame_run(const ph_frame *f, const ph_list *list, ph_ahead *a) {
  for (int n = 0; n < list->n; n++) {
    const ph_ins *i = &list->ins[n];
    ph_ahead_ask(a);
    switch (i->kind) {
    case PH_INS_PRODUCT: run_product(f, i); break;
    case PH_INS_OP:
    case PH_INS_OP_BWD: run_op(f, i); break;
    case PH_INS_AXPBY: run_axpby(f, i); break;
    case PH_INS_WGRAD: run_weight_grad(f, i); break;
    case PH_INS_COLSUM: run_colsum(f, i); break;
    case PH_INS_DGRAD: run_data_grad(f, i); break;
    case PH_INS_ZERO: ph_frame_clear(f, i->out); break;
    }
  }
}
