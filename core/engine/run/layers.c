/* layers.c - the layer phase: for a block of layers, reduce the groups' gradients in fixed order, run the parameter
 * adjoint, the optimizer and the parameter forward, and pack the weights. One parallel region, no barrier inside.
 */
#include "base/clock.h"
#include "engine/run/plan_internal.h"

typedef struct task {
  const ph_plan *p;
  const ph_update *u;
  const ph_segment *segment;
  ph_worker *w;
  int64_t first, count; /* layers */
  char *wgrad;          /* reduced weight cotangents, prog.grad apart */
} task;

static char *locate(const task *t, const ph_ploc *l) {
  const ph_plan *p = t->p;
  switch (l->space) {
  case PH_PS_LEAF: return ph_plan_at(p, t->segment->param[l->param]->value, t->first * l->step);
  case PH_PS_KEEP: return ph_plan_at(p, t->segment->keep, l->off * t->segment->layers + t->first * l->step);
  case PH_PS_PACK: return ph_plan_at(p, t->segment->pack, l->off + t->first * l->step);
  case PH_PS_TEMP: return ph_plan_at(p, t->w->temp, l->off * t->count);
  case PH_PS_WGRAD: return ph_plan_at(p, t->wgrad, l->off);
  case PH_PS_NONE: break;
  }
  return NULL;
}

static ph_opnd operand(const task *t, const ph_ploc *l, ph_shape s) { return (ph_opnd){locate(t, l), s.cols, l->step}; }

static void run_sum(const task *t, const ph_pins *i) {
  int64_t n = i->out_shape.rows * i->out_shape.cols;
  ph_opnd a = operand(t, &i->in[0], i->out_shape);
  ph_opnd b = operand(t, &i->in[1], i->out_shape);
  ph_opnd out = operand(t, &i->out, i->out_shape);
  for (int64_t m = 0; m < t->count; m++) {
    t->p->k->axpby(1, n, 1.0, ph_plan_at(t->p, a.p, m * a.step), n, 1.0, b.p ? ph_plan_at(t->p, b.p, m * b.step) : NULL,
                   n, ph_plan_at(t->p, out.p, m * out.step), n);
  }
}

static void run_list(const task *t, const ph_plist *list, bool backward) {
  for (int n = 0; n < list->n; n++) {
    const ph_pins *i = &list->ins[n];
    if (!i->op) {
      run_sum(t, i);
      continue;
    }
    ph_call c = ph_op_call(i->nargs, i->in_shape, i->out_shape, i->attr, 1);
    c.k = t->p->k;
    c.count = t->count;
    c.scratch = t->w->op;
    c.out = operand(t, &i->out, i->out_shape);
    c.aux = (ph_opnd){.p = locate(t, &i->aux), .step = i->aux.step};
    for (int a = 0; a < i->nargs; a++) {
      c.in[a] = operand(t, &i->in[a], i->in_shape[a]);
      if (backward) {
        c.gin[a] = operand(t, &i->gin[a], i->in_shape[a]);
        c.acc[a] = i->acc[a];
      }
    }
    if (backward) {
      c.gout = operand(t, &i->gout, i->out_shape);
    }
    (backward ? i->op->bwd : i->op->fwd)(&c);
  }
}

/* Sums the groups in order 0, 1, ... */
static void reduce(task *t) {
  const ph_plan *p = t->p;
  int64_t n = t->segment->prog.grad * t->count;
  int64_t group = t->segment->layers * t->segment->prog.grad;
  char *first = ph_plan_at(p, t->segment->grad, t->first * t->segment->prog.grad);
  if (t->u->groups == 1) {
    t->wgrad = first;
    return;
  }
  t->wgrad = t->w->sum;
  const char *sum = first;
  for (int64_t g = 1; g < t->u->groups; g++) {
    p->k->axpby(1, n, 1.0, sum, n, 1.0, ph_plan_at(p, first, g * group), n, t->wgrad, n);
    sum = t->wgrad;
  }
}

static void store(const task *t, const ph_param *q, const ph_ploc *cot) {
  const ph_plan *p = t->p;
  int64_t n = q->rows * q->cols;
  for (int64_t l = 0; l < t->count; l++) {
    char *to = ph_plan_at(p, q->grad, (t->first + l) * n);
    if (cot->space == PH_PS_NONE) {
      memset(to, 0, (size_t)n * p->size);
    } else {
      memcpy(to, ph_plan_at(p, locate(t, cot), l * cot->step), (size_t)n * p->size);
    }
  }
}

static void optimize_one(const task *t, const ph_param *q, int64_t layer, char *g) {
  const ph_plan *p = t->p;
  int64_t n = q->rows * q->cols;
  char *value = ph_plan_at(p, q->value, layer * n);
  char *m1 = ph_plan_at(p, q->moment1, layer * n);
  if (t->u->shrink != 1.0) {
    p->k->axpby(1, n, t->u->shrink, g, n, 0.0, NULL, 0, g, n);
  }
  if (t->u->optim->kind == PH_OPTIM_ADAM) {
    p->k->adam(n, value, g, m1, ph_plan_at(p, q->moment2, layer * n), &q->adam);
  } else {
    p->k->sgd(n, value, g, m1, q->adam.lr, t->u->optim->momentum, q->adam.weight_decay);
  }
}

static void optimize(const task *t) {
  const ph_plan *p = t->p;
  for (int i = 0; i < t->segment->prog.seg->nparams; i++) {
    const ph_param *q = t->segment->param[i];
    const ph_ploc *cot = &t->segment->pprog.leaf_cot[i];
    if (t->u->store_grad) {
      store(t, q, cot);
    }
    bool moves = t->u->optim && !q->rates.frozen && cot->space != PH_PS_NONE;
    for (int64_t l = 0; moves && l < t->count; l++) {
      char *g = t->u->from_store ? ph_plan_at(p, q->grad, (t->first + l) * q->rows * q->cols)
                                 : ph_plan_at(p, locate(t, cot), l * cot->step);
      optimize_one(t, q, t->first + l, g);
    }
  }
}

static void pack_matrix(const task *t, const ph_product *q, int m, int64_t row, int64_t layer) {
  const ph_plan *p = t->p;
  const ph_program *s = &t->segment->prog;
  const ph_weight *w = &s->weight[q->matrix[m]];
  const ph_ploc *v = &t->segment->pprog.value[w->node];
  const char *from = ph_plan_at(p, locate(t, v), layer * v->step);
  char *pack = ph_plan_at(p, t->segment->pack, (t->first + layer) * s->pack);
  char *natural = ph_plan_at(p, pack, q->wn + row * q->K);
  if (natural != from) {
    memcpy(natural, from, (size_t)(w->rows * w->cols) * p->size);
  }
  p->k->transpose(w->rows, w->cols, from, w->cols, ph_plan_at(p, pack, q->wt + row), q->N);
}

static void pack_vector(const task *t, const ph_weight *w, int64_t at, int64_t layer) {
  const ph_plan *p = t->p;
  const ph_ploc *v = &t->segment->pprog.value[w->node];
  char *pack = ph_plan_at(p, t->segment->pack, (t->first + layer) * t->segment->prog.pack);
  memcpy(ph_plan_at(p, pack, at), ph_plan_at(p, locate(t, v), layer * v->step), (size_t)(w->rows * w->cols) * p->size);
}

static void pack(const task *t) {
  const ph_program *s = &t->segment->prog;
  for (int64_t l = 0; l < t->count; l++) {
    for (int i = 0; i < s->nproducts; i++) {
      const ph_product *q = &s->product[i];
      int64_t row = 0;
      for (int m = 0; m < q->members; m++) {
        pack_matrix(t, q, m, row, l);
        if (q->bias[m] >= 0) {
          pack_vector(t, &s->weight[q->bias[m]], q->wb + row, l);
        }
        row += s->weight[q->matrix[m]].rows;
      }
    }
    for (int w = 0; w < s->nweights; w++) {
      if (s->weight[w].pack >= 0) {
        pack_vector(t, &s->weight[w], s->weight[w].pack, l);
      }
    }
  }
}

typedef struct region {
  ph_plan *p;
  const ph_update *u;
} region;

static void block_task(void *ctx, int block, int worker) {
  const region *r = ctx;
  const ph_block *b = &r->p->block[block];
  task t = {.p = r->p,
            .u = r->u,
            .segment = &r->p->segment[b->segment],
            .w = &r->p->worker[worker],
            .first = b->first,
            .count = b->count};
  if (r->u->have_grad) {
    reduce(&t);
    run_list(&t, &t.segment->pprog.bwd, true);
  }
  if (r->u->have_grad || r->u->from_store) {
    optimize(&t);
  }
  if (r->u->forward) {
    run_list(&t, &t.segment->pprog.fwd, false);
    pack(&t);
  }
}

void ph_layers_run(ph_plan *p, const ph_update *u) {
  region r = {p, u};
  double start = ph_clock();
  ph_pool_run(p->pool, p->nblocks, block_task, &r);
  p->seconds_layers += ph_clock() - start;
}
