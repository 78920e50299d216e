/* access.c - parameters, moments and gradients in and out; initial values; cost; times. */
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "engine/plan_internal.h"

int ph_plan_param_count(const ph_plan *p) { return p->nparams; }
const char *ph_plan_param_name(const ph_plan *p, int i) { return p->param[i].name; }
int64_t ph_plan_steps(const ph_plan *p) { return p->steps; }
void ph_plan_set_steps(ph_plan *p, int64_t steps) { p->steps = steps; }
void ph_plan_set_rates(ph_plan *p, int i, const ph_rates *rates) { p->param[i].rates = *rates; }
int ph_plan_segments(const ph_plan *p) { return p->nparts; }
int64_t ph_plan_repeat(const ph_plan *p, int s) { return p->ir->segment[s].repeat; }

static int64_t count(const ph_param *q) { return q->layers * q->rows * q->cols; }

int64_t ph_plan_param_total(const ph_plan *p) {
  int64_t total = 0;
  for (int i = 0; i < p->nparams; i++) {
    total += count(&p->param[i]);
  }
  return total;
}

/* A borrowed view of a parameter's memory as a flat tensor. */
static ph_tensor view(const ph_plan *p, const ph_param *q, char *data) {
  return (ph_tensor){.dtype = p->ir->dtype, .rank = 3, .dim = {q->layers, q->rows, q->cols, 1}, .data = data};
}

static void init_one(const ph_plan *p, ph_param *q, uint64_t seed) {
  const ph_ir_param *r = &p->ir->segment[q->part].param[q->leaf];
  ph_tensor t = view(p, q, q->value);
  ph_rng rng = ph_rng_of(seed, q->name);
  if (r->init == PH_INIT_NORMAL) {
    ph_rng_fill_normal(rng, 0, r->scale, &t);
    return;
  }
  if (r->init == PH_INIT_UNIFORM) {
    ph_rng_fill_uniform(rng, 0, r->scale, &t);
    return;
  }
  double v = r->init == PH_INIT_ZEROS ? 0 : r->init == PH_INIT_ONES ? 1 : r->scale;
  for (int64_t i = 0; i < count(q); i++) {
    ph_tensor_set(&t, i, v);
  }
}

void ph_plan_init(ph_plan *p, uint64_t seed) {
  for (int i = 0; i < p->nparams; i++) {
    ph_param *q = &p->param[i];
    init_one(p, q, seed);
    memset(q->moment1, 0, (size_t)count(q) * p->size);
    memset(q->moment2, 0, (size_t)count(q) * p->size);
    memset(q->grad, 0, (size_t)count(q) * p->size);
  }
  p->steps = 0;
  ph_plan_refresh(p);
}

void ph_plan_refresh(ph_plan *p) {
  p->update = (ph_update){.forward = true, .shrink = 1.0};
  ph_layers_run(p);
}

static char *slot_of(const ph_param *q, ph_slot slot) {
  char *const data[] = {q->value, q->moment1, q->moment2, q->grad};
  return data[slot];
}

ph_status ph_plan_get(const ph_plan *p, int i, ph_slot slot, ph_tensor **out, ph_err *err) {
  const ph_param *q = &p->param[i];
  ph_tensor t = view(p, q, slot_of(q, slot));
  return ph_tensor_copy(out, &t, err);
}

ph_status ph_plan_set(ph_plan *p, int i, ph_slot slot, const ph_tensor *t, ph_err *err) {
  ph_param *q = &p->param[i];
  char have[96];
  if (t->dtype != p->ir->dtype) {
    return ph_err_set(err, PH_E_DTYPE, "%s is %s, got %s", q->name, ph_dtype_name(p->ir->dtype),
                      ph_dtype_name(t->dtype));
  }
  if (ph_tensor_count(t) != count(q) || t->dim[t->rank > 0 ? t->rank - 1 : 0] != q->cols) {
    return ph_err_set(err, PH_E_SHAPE, "%s has shape (%lld, %lld, %lld), got %s", q->name, (long long)q->layers,
                      (long long)q->rows, (long long)q->cols, ph_tensor_describe(t, have, sizeof have));
  }
  int64_t bad = ph_tensor_first_nonfinite(t);
  if (bad >= 0) {
    return ph_err_set(err, PH_E_NONFINITE, "%s: element %lld is not finite", q->name, (long long)bad + 1);
  }
  memcpy(slot_of(q, slot), t->data, (size_t)count(q) * p->size);
  return PH_OK;
}

/* ---- cost ---- */

static void program_flops(const ph_program *s, double *forward, double *both) {
  double f = 0;
  double b = 0;
  for (int i = 0; i < s->graph.n; i++) {
    const ph_gnode *n = &s->graph.node[i];
    if (!n->live || ph_graph_is_param(&s->graph, i) || !n->op) {
      continue;
    }
    ph_shape in[PH_OP_ARGS];
    for (int a = 0; a < n->nargs; a++) {
      in[a] = s->graph.node[n->arg[a]].shape;
    }
    ph_call c = ph_op_call(n->nargs, in, n->shape, n->attr, 1);
    double one = n->op->flops(&c);
    f += one;
    b += one * n->op->flops_bwd;
  }
  *forward += f * (double)s->seg->repeat;
  *both += (f + b) * (double)s->seg->repeat;
}

void ph_plan_cost(const ph_plan *p, ph_cost *out) {
  *out = (ph_cost){.groups = p->groups, .tile = p->tile};
  int64_t size = (int64_t)p->size;
  for (int s = 0; s < p->nparts; s++) {
    const ph_part *t = &p->part[s];
    program_flops(&t->prog, &out->flops_forward, &out->flops_stream);
    out->flops_param += t->pprog.flops * (double)t->layers;
    out->bytes_packed += t->prog.pack * t->layers * size;
    out->bytes_grad += t->prog.grad * t->layers * p->groups * size;
    out->bytes_tape += t->chunk * t->prog.record * size;
    if (t->chunks > 1 && t->chunk > out->chunk) {
      out->chunk = t->chunk;
    }
  }
  out->bytes_param = ph_plan_param_total(p) * size;
}

void ph_plan_times(ph_plan *p, double *stream, double *layers, bool reset) {
  *stream = p->seconds_stream;
  *layers = p->seconds_layers;
  if (reset) {
    p->seconds_stream = p->seconds_layers = 0;
  }
}
