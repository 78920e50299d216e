/* memory.c - everything a plan will ever need, taken once: parameters, gradients of each group, packs, workers' desks. */
#include <math.h>

#include "base/mem.h"
#include "engine/plan_internal.h"

enum { TEMP_TARGET = 256 * 1024 }; /* bytes of a chunk of layers: half a small second-level cache */

static char *take(const ph_plan *p, int64_t elements, bool *failed) {
  char *m = *failed || elements < 0 ? NULL : ph_mem_new((size_t)elements + 16, p->size);
  *failed |= !m;
  return m;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void part_memory(ph_plan *p, ph_part *t, bool *failed) {
  t->keep = take(p, t->pprog.keep * t->layers, failed);
  t->pack = take(p, t->prog.pack * t->layers, failed);
  t->grad = take(p, t->prog.grad * t->layers * p->groups, failed);
}

static void param_memory(ph_plan *p, ph_param *q, bool *failed) {
  int64_t n = q->layers * q->rows * q->cols;
  q->value = take(p, n, failed);
  q->moment1 = take(p, n, failed);
  q->moment2 = take(p, n, failed);
  q->grad = take(p, n, failed);
}

static int64_t features(ph_shape s) { return s.pos * s.cols; }

static void desk_segment(ph_plan *p, ph_desk *d, int s, bool *failed) {
  const ph_part *t = &p->part[s];
  const ph_ir_segment *seg = t->prog.seg;
  int64_t last = most(t->prog.record, p->tile * features(t->prog.graph.node[t->prog.graph.result].shape) + 16);
  d->tape[s] = take(p, t->chunk * t->prog.record + last, failed);
  d->kept[s] = take(p, t->chunks > 1 ? t->chunks * p->tile * features(seg->state) : 0, failed);
  d->scratch[s] = take(p, t->prog.scratch, failed);
  d->cot[0][s] = take(p, t->prog.cot, failed);
  d->cot[1][s] = take(p, t->prog.cot, failed);
  d->seq[s] = take(p, p->tile * features(seg->out), failed);
  d->g[s + 1] = take(p, p->tile * features(seg->out), failed);
}

static void desk_layers(ph_plan *p, ph_desk *d, bool *failed) {
  int64_t temp = 0;
  int64_t sum = 0;
  int64_t op = 0;
  for (int s = 0; s < p->nparts; s++) {
    const ph_part *t = &p->part[s];
    temp = most(temp, t->pprog.temp * t->unit_layers);
    sum = most(sum, t->prog.grad * t->unit_layers);
    op = most(op, most(t->prog.op_scratch, t->pprog.op_scratch));
  }
  d->temp = take(p, temp, failed);
  d->sum = take(p, sum, failed);
  d->op = take(p, op, failed);
}

static void desk_memory(ph_plan *p, ph_desk *d, bool *failed) {
  size_t n = (size_t)p->nparts + 1;
  char ***list[] = {&d->tape, &d->kept, &d->scratch, &d->cot[0], &d->cot[1], &d->seq, &d->g};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    *list[i] = ph_mem_new(n, sizeof **list[i]);
    *failed |= !*list[i];
  }
  if (*failed) {
    return;
  }
  int64_t rows = p->tile * most(p->ir->output.pos, 1);
  d->x = take(p, p->tile * features(p->ir->input), failed);
  d->g[0] = take(p, p->tile * features(p->ir->input), failed);
  d->target = take(p, p->ir->loss == PH_LOSS_MSE ? p->tile * features(p->ir->output) : 0, failed);
  d->label = ph_mem_new((size_t)rows, sizeof *d->label);
  d->hit = ph_mem_new((size_t)rows, sizeof *d->hit);
  d->loss = ph_mem_new((size_t)rows, sizeof *d->loss);
  d->norm = ph_mem_new((size_t)p->tile, sizeof *d->norm);
  *failed |= !d->label || !d->hit || !d->loss || !d->norm;
  for (int s = 0; s < p->nparts; s++) {
    desk_segment(p, d, s, failed);
  }
  desk_layers(p, d, failed);
}

static void desk_release(const ph_plan *p, ph_desk *d) {
  char **list[] = {d->tape, d->kept, d->scratch, d->cot[0], d->cot[1], d->seq, d->g};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    for (int s = 0; list[i] && s <= p->nparts; s++) {
      ph_mem_free(list[i][s]);
    }
    ph_mem_free(list[i]);
  }
  void *one[] = {d->x, d->target, d->label, d->loss, d->norm, d->hit, d->temp, d->sum, d->op};
  for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
    ph_mem_free(one[i]);
  }
}

/* Layers of one task of the layer phase: what fits the target, at least one, at most sixteen. */
static int unit_layers(const ph_plan *p, const ph_part *t) {
  int64_t bytes = (t->pprog.temp + t->pprog.keep + 2 * t->prog.grad) * (int64_t)p->size;
  int64_t n = bytes ? TEMP_TARGET / bytes : 1;
  n = n < 1 ? 1 : n > 16 ? 16 : n;
  return (int)(n < t->layers ? n : t->layers);
}

static void make_units(ph_plan *p, bool *failed) {
  for (int s = 0; s < p->nparts; s++) {
    p->part[s].unit_layers = unit_layers(p, &p->part[s]);
    p->nunits += (int)((p->part[s].layers + p->part[s].unit_layers - 1) / p->part[s].unit_layers);
  }
  p->unit = ph_mem_new((size_t)p->nunits, sizeof *p->unit);
  *failed |= !p->unit;
  int n = 0;
  for (int s = 0; s < p->nparts && !*failed; s++) {
    const ph_part *t = &p->part[s];
    for (int64_t l = 0; l < t->layers; l += t->unit_layers) {
      int64_t left = t->layers - l;
      p->unit[n++] = (ph_unit){s, l, left < t->unit_layers ? left : t->unit_layers};
    }
  }
}

ph_status ph_plan_allocate(ph_plan *p, ph_err *err) {
  bool failed = false;
  make_units(p, &failed);
  for (int s = 0; s < p->nparts; s++) {
    part_memory(p, &p->part[s], &failed);
  }
  for (int i = 0; i < p->nparams; i++) {
    param_memory(p, &p->param[i], &failed);
  }
  p->result = ph_mem_new((size_t)p->groups, sizeof *p->result);
  p->desk = ph_mem_new((size_t)p->workers, sizeof *p->desk);
  failed |= !p->result || !p->desk;
  for (int w = 0; w < p->workers && !failed; w++) {
    desk_memory(p, &p->desk[w], &failed);
  }
  return failed ? ph_err_set(err, PH_E_NOMEM, "out of memory: the plan does not fit") : PH_OK;
}

void ph_plan_release(ph_plan *p) {
  for (int w = 0; p->desk && w < p->workers; w++) {
    desk_release(p, &p->desk[w]);
  }
  ph_mem_free(p->desk);
  for (int i = 0; i < p->nparams; i++) {
    ph_mem_free(p->param[i].value);
    ph_mem_free(p->param[i].moment1);
    ph_mem_free(p->param[i].moment2);
    ph_mem_free(p->param[i].grad);
  }
  for (int s = 0; s < p->nparts; s++) {
    ph_program_fini(&p->part[s].prog);
    ph_pprog_fini(&p->part[s].pprog);
    ph_mem_free(p->part[s].keep);
    ph_mem_free(p->part[s].pack);
    ph_mem_free(p->part[s].grad);
  }
  ph_mem_free(p->param);
  ph_mem_free(p->part);
  ph_mem_free(p->result);
  ph_mem_free(p->unit);
}
