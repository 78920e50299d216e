/* layers.c - the layer phase: for a chunk of layers, reduce the groups' gradients in fixed order, run the parameter
 * adjoint, the optimizer and the parameter forward, and pack the weights. One parallel region, no barrier inside.
 */
#include "engine/plan_internal.h"

typedef struct chunk {
  ph_plan *p;
  ph_part *part;
  ph_desk *d;
  int64_t first, count; /* layers */
  char *wgrad;          /* reduced weight cotangents, prog.grad apart */
} chunk;

static char *locate(const chunk *c, const ph_ploc *l) {
  const ph_plan *p = c->p;
  switch (l->space) {
  case PH_PS_LEAF: return ph_at(p, p->param[c->part->first_param + l->param].value, c->first * l->step);
  case PH_PS_KEEP: return ph_at(p, c->part->keep, l->off * c->part->layers + c->first * l->step);
  case PH_PS_PACK: return ph_at(p, c->part->pack, l->off + c->first * l->step);
  case PH_PS_TEMP: return ph_at(p, c->d->temp, l->off * c->count);
  case PH_PS_WGRAD: return ph_at(p, c->wgrad, l->off);
  case PH_PS_NONE: break;
  }
  return NULL;
}

static ph_opnd operand(const chunk *c, const ph_ploc *l, ph_shape s) {
  return (ph_opnd){locate(c, l), s.cols, l->step};
}

static void run_sum(const chunk *c, const ph_pins *i) {
  int64_t n = i->out_shape.rows * i->out_shape.cols;
  ph_opnd a = operand(c, &i->in[0], i->out_shape);
  ph_opnd b = operand(c, &i->in[1], i->out_shape);
  ph_opnd out = operand(c, &i->out, i->out_shape);
  for (int64_t m = 0; m < c->count; m++) {
    c->p->k->axpby(1, n, 1.0, ph_at(c->p, a.p, m * a.step), n, 1.0, b.p ? ph_at(c->p, b.p, m * b.step) : NULL, n,
                   ph_at(c->p, out.p, m * out.step), n);
  }
}

static void run_list(const chunk *c, const ph_plist *list, bool backward) {
  for (int n = 0; n < list->n; n++) {
    const ph_pins *i = &list->ins[n];
    if (!i->op) {
      run_sum(c, i);
      continue;
    }
    ph_call call = {.k = c->p->k, .count = c->count, .scratch = c->d->op, .out_shape = i->out_shape};
    memcpy(call.attr, i->attr, sizeof call.attr);
    call.out = operand(c, &i->out, i->out_shape);
    call.aux = (ph_opnd){.p = locate(c, &i->aux), .step = i->aux.step};
    for (int a = 0; a < i->nargs; a++) {
      call.in[a] = operand(c, &i->in[a], i->in_shape[a]);
      call.in_shape[a] = i->in_shape[a];
      if (backward) {
        call.gin[a] = operand(c, &i->gin[a], i->in_shape[a]);
        call.acc[a] = i->acc[a];
      }
    }
    if (backward) {
      call.gout = operand(c, &i->gout, i->out_shape);
    }
    (backward ? i->op->bwd : i->op->fwd)(&call);
  }
}

/* Sums the groups in order 0, 1, ... */
static void reduce(chunk *c) {
  ph_plan *p = c->p;
  int64_t n = c->part->prog.grad * c->count;
  int64_t group = c->part->layers * c->part->prog.grad;
  char *first = ph_at(p, c->part->grad, c->first * c->part->prog.grad);
  if (p->update.groups == 1) {
    c->wgrad = first;
    return;
  }
  c->wgrad = c->d->sum;
  const char *sum = first;
  for (int64_t g = 1; g < p->update.groups; g++) {
    p->k->axpby(1, n, 1.0, sum, n, 1.0, ph_at(p, first, g * group), n, c->wgrad, n);
    sum = c->wgrad;
  }
}

static void store(const chunk *c, const ph_param *q, const ph_ploc *cot) {
  ph_plan *p = c->p;
  int64_t n = q->rows * q->cols;
  for (int64_t l = 0; l < c->count; l++) {
    char *to = ph_at(p, q->grad, (c->first + l) * n);
    if (cot->space == PH_PS_NONE) {
      memset(to, 0, (size_t)n * p->size);
    } else {
      memcpy(to, ph_at(p, locate(c, cot), l * cot->step), (size_t)n * p->size);
    }
  }
}

static void optimize_one(ph_plan *p, ph_param *q, int64_t layer, char *g) {
  const ph_optim *o = p->update.optim;
  int64_t n = q->rows * q->cols;
  char *value = ph_at(p, q->value, layer * n);
  char *m1 = ph_at(p, q->moment1, layer * n);
  if (p->update.shrink != 1.0) {
    p->k->axpby(1, n, p->update.shrink, g, n, 0.0, NULL, 0, g, n);
  }
  if (o->kind == PH_OPTIM_ADAM) {
    p->k->adam(n, value, g, m1, ph_at(p, q->moment2, layer * n), &q->adam);
  } else {
    p->k->sgd(n, value, g, m1, q->adam.lr, o->momentum, q->adam.weight_decay);
  }
}

static void optimize(const chunk *c) {
  ph_plan *p = c->p;
  for (int i = 0; i < c->part->prog.seg->nparams; i++) {
    ph_param *q = &p->param[c->part->first_param + i];
    const ph_ploc *cot = &c->part->pprog.leaf_cot[i];
    if (p->update.store_grad) {
      store(c, q, cot);
    }
    bool moves = p->update.optim && !q->rates.frozen;
    for (int64_t l = 0; moves && cot->space != PH_PS_NONE && l < c->count; l++) {
      char *g = p->update.from_store ? ph_at(p, q->grad, (c->first + l) * q->rows * q->cols)
                                     : ph_at(p, locate(c, cot), l * cot->step);
      optimize_one(p, q, c->first + l, g);
    }
  }
}

static void pack_matrix(const chunk *c, const ph_product *q, int m, int64_t row, int64_t layer) {
  ph_plan *p = c->p;
  const ph_program *s = &c->part->prog;
  const ph_weight *w = &s->weight[q->matrix[m]];
  const ph_ploc *v = &c->part->pprog.value[w->node];
  const char *from = ph_at(p, locate(c, v), layer * v->step);
  char *pack = ph_at(p, c->part->pack, (c->first + layer) * s->pack);
  char *natural = ph_at(p, pack, q->wn + row * q->K);
  if (natural != from) {
    memcpy(natural, from, (size_t)(w->rows * w->cols) * p->size);
  }
  p->k->transpose(w->rows, w->cols, from, w->cols, ph_at(p, pack, q->wt + row), q->N);
}

static void pack_vector(const chunk *c, const ph_weight *w, int64_t at, int64_t layer) {
  ph_plan *p = c->p;
  const ph_ploc *v = &c->part->pprog.value[w->node];
  char *pack = ph_at(p, c->part->pack, (c->first + layer) * c->part->prog.pack);
  memcpy(ph_at(p, pack, at), ph_at(p, locate(c, v), layer * v->step), (size_t)(w->rows * w->cols) * p->size);
}

static void pack(const chunk *c) {
  const ph_program *s = &c->part->prog;
  for (int64_t l = 0; l < c->count; l++) {
    for (int i = 0; i < s->nproducts; i++) {
      const ph_product *q = &s->product[i];
      int64_t row = 0;
      for (int m = 0; m < q->members; m++) {
        pack_matrix(c, q, m, row, l);
        if (q->bias[m] >= 0) {
          pack_vector(c, &s->weight[q->bias[m]], q->wb + row, l);
        }
        row += s->weight[q->matrix[m]].rows;
      }
    }
    for (int w = 0; w < s->nweights; w++) {
      if (s->weight[w].pack >= 0) {
        pack_vector(c, &s->weight[w], s->weight[w].pack, l);
      }
    }
  }
}

void ph_layers_task(void *plan, int unit, int worker) {
  ph_plan *p = plan;
  const ph_unit *u = &p->unit[unit];
  chunk c = {.p = p, .part = &p->part[u->part], .d = &p->desk[worker], .first = u->first, .count = u->count};
  if (p->update.have_grad) {
    reduce(&c);
    run_list(&c, &c.part->pprog.bwd, true);
  }
  if (p->update.have_grad || p->update.from_store) {
    optimize(&c);
  }
  if (p->update.forward) {
    run_list(&c, &c.part->pprog.fwd, false);
    pack(&c);
  }
}

void ph_layers_run(ph_plan *p) { ph_pool_run(p->pool, p->nunits, ph_layers_task, p); }
