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

/* The first of the task's matrices in a slot; NULL for none. */
static char *locate(const task *t, int slot) {
  const ph_plan *p = t->p;
  if (slot < 0) {
    return NULL;
  }
  const ph_pslot *l = &t->segment->pprog.slot[slot];
  switch (l->space) {
  case PH_PS_LEAF: return ph_plan_at(p, t->segment->param[l->param]->value, t->first * l->step);
  case PH_PS_KEEP: return ph_plan_at(p, t->segment->keep, l->off * t->segment->layers + t->first * l->step);
  case PH_PS_PACK: return ph_plan_at(p, t->segment->pack, l->off + t->first * l->step);
  case PH_PS_TEMP: return ph_plan_at(p, t->w->temp, l->off * t->count);
  case PH_PS_WGRAD: return ph_plan_at(p, t->wgrad, l->off);
  }
  return NULL;
}

/* The matrix of one of the task's layers. */
static char *matrix_of(const task *t, int slot, int64_t layer) {
  return ph_plan_at(t->p, locate(t, slot), layer * t->segment->pprog.slot[slot].step);
}

static ph_opnd operand(const task *t, int slot, int64_t layer, int64_t cols) {
  if (slot < 0) {
    return (ph_opnd){0};
  }
  return (ph_opnd){matrix_of(t, slot, layer), cols, t->segment->pprog.slot[slot].step};
}

static void run_axpby(const task *t, const ph_ins *i) {
  int64_t n = i->out_shape.rows * i->out_shape.cols;
  for (int64_t l = 0; l < t->count; l++) {
    t->p->k->axpby(1, n, i->alpha.value, matrix_of(t, i->a, l), n, i->beta, i->b >= 0 ? matrix_of(t, i->b, l) : NULL, n,
                   matrix_of(t, i->out, l), n);
  }
}

/* On `count` of the task's layers, which have the same attributes. */
static void run_op(const task *t, const ph_ins *i, int64_t layer, int64_t count) {
  bool back = i->kind == PH_INS_OP_BWD;
  double attr[PH_OP_ATTRS];
  ph_coefs_at(i->attr, t->first + layer, attr);
  ph_call c = ph_op_call(i->op, i->in_shape, i->out_shape, attr, 1);
  c.k = t->p->k;
  c.count = count;
  c.scratch = t->w->op;
  c.out = operand(t, i->out, layer, i->out_shape.cols);
  c.aux = operand(t, i->aux, layer, 0);
  for (int a = 0; a < i->nargs; a++) {
    c.in[a] = operand(t, i->in[a], layer, i->in_shape[a].cols);
    c.gin[a] = operand(t, i->gin[a], layer, i->in_shape[a].cols);
    c.acc[a] = i->acc[a];
  }
  c.gout = operand(t, i->a, layer, i->out_shape.cols);
  (back ? i->op->bwd : i->op->fwd)(&c);
}

static void run_list(const task *t, const ph_list *list) {
  for (int n = 0; n < list->n; n++) {
    const ph_ins *i = &list->ins[n];
    if (i->kind == PH_INS_AXPBY) {
      run_axpby(t, i);
    } else {
      int64_t alike = ph_coefs_vary(i->attr) ? 1 : t->count;
      for (int64_t l = 0; l < t->count; l += alike) {
        run_op(t, i, l, alike);
      }
    }
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

/* Leaves a cotangent (cot < 0: zero) in the parameter's gradient; of those who share it the first writes and the others add. */
static void store(const task *t, const ph_param *q, int cot) {
  const ph_plan *p = t->p;
  int64_t n = q->rows * q->cols;
  for (int64_t l = 0; l < t->count; l++) {
    char *to = ph_plan_at(p, q->grad, (t->first + l) * n);
    const char *from = cot < 0 ? NULL : matrix_of(t, cot, l);
    if (q->first != t->segment) {
      p->k->axpby(1, n, 1.0, to, n, from ? 1.0 : 0.0, from, n, to, n);
    } else if (from) {
      memcpy(to, from, (size_t)n * p->size);
    } else {
      memset(to, 0, (size_t)n * p->size);
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
    int cot = t->segment->pprog.leaf_cot[i];
    bool shared = q->first != q->last;
    if (t->u->store_grad || (shared && t->u->have_grad)) {
      store(t, q, cot);
    }
    bool stored = shared || t->u->from_store;
    bool now = t->u->optim && !q->rates.frozen && q->moves && q->last == t->segment;
    for (int64_t l = 0; now && l < t->count; l++) {
      optimize_one(t, q, t->first + l,
                   stored ? ph_plan_at(p, q->grad, (t->first + l) * q->rows * q->cols) : matrix_of(t, cot, l));
    }
  }
}

static void pack_matrix(const task *t, const ph_product *q, int m, int64_t row, int64_t layer) {
  const ph_plan *p = t->p;
  const ph_program *s = &t->segment->prog;
  const ph_weight *w = &s->weight[q->matrix[m]];
  const char *from = matrix_of(t, t->segment->pprog.code.value[w->node], layer);
  char *pack = ph_plan_at(p, t->segment->pack, (t->first + layer) * s->pack);
  char *natural = ph_plan_at(p, pack, q->wn + row * q->K);
  if (natural != from) {
    memcpy(natural, from, (size_t)(w->rows * w->cols) * p->size);
  }
  p->k->transpose(w->rows, w->cols, from, w->cols, ph_plan_at(p, pack, q->wt + row), q->N);
}

static void pack_vector(const task *t, const ph_weight *w, int64_t at, int64_t layer) {
  const ph_plan *p = t->p;
  char *pack = ph_plan_at(p, t->segment->pack, (t->first + layer) * t->segment->prog.pack);
  const char *from = matrix_of(t, t->segment->pprog.code.value[w->node], layer);
  memcpy(ph_plan_at(p, pack, at), from, (size_t)(w->rows * w->cols) * p->size);
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

static void adjoint(task *t) {
  if (t->u->have_grad) {
    reduce(t);
    run_list(t, &t->segment->pprog.bwd);
  }
  if (t->u->have_grad || t->u->from_store) {
    optimize(t);
  }
}

/* A parameter that segments share moves when the last of them has handed over its cotangent, before the first reads it again. */
static void block_task(void *ctx, int block, int worker) {
  const region *r = ctx;
  const ph_block *b = &r->p->block[block];
  const ph_segment *head = &r->p->segment[b->segment];
  task t = {.p = r->p, .u = r->u, .w = &r->p->worker[worker], .first = b->first, .count = b->count};
  for (t.segment = head; t.segment; t.segment = t.segment->next) {
    adjoint(&t);
  }
  for (t.segment = head; t.segment && r->u->forward; t.segment = t.segment->next) {
    run_list(&t, &t.segment->pprog.code.fwd);
    pack(&t);
  }
}

void ph_layers_run(ph_plan *p, const ph_update *u) {
  region r = {p, u};
  double start = ph_clock();
  ph_pool_run(p->pool, p->nblocks, block_task, &r);
  p->seconds_layers += ph_clock() - start;
}
