/* memory.c - everything a plan will ever need, taken once: parameters, gradients of each group, packs, workers' memory. */
#include <math.h>

#include "base/mem.h"
#include "engine/run/plan_internal.h"

enum { TEMP_TARGET = 256 * 1024 }; /* bytes of a block of layers: half a small second-level cache */

static char *take(const ph_plan *p, int64_t elements, bool *failed) {
  char *m = *failed || elements < 0 ? NULL : ph_mem_new((size_t)elements + 16, p->size);
  *failed |= !m;
  return m;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void segment_memory(ph_plan *p, ph_segment *t, bool *failed) {
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

static void worker_segment(ph_plan *p, ph_worker *w, int s, bool *failed) {
  const ph_segment *t = &p->segment[s];
  const ph_ir_segment *seg = t->prog.seg;
  int64_t last = most(t->prog.record, p->tile * features(t->prog.graph.node[t->prog.graph.result].shape) + 16);
  w->tape[s] = take(p, t->window * t->prog.record + last, failed);
  w->kept[s] = take(p, t->windows > 1 ? t->windows * p->tile * features(seg->state) : 0, failed);
  w->scratch[s] = take(p, t->prog.scratch, failed);
  w->cot[0][s] = take(p, t->prog.cot, failed);
  w->cot[1][s] = take(p, t->prog.cot, failed);
  w->seq[s] = take(p, p->tile * features(seg->out), failed);
  w->g[s + 1] = take(p, p->tile * features(seg->out), failed);
}

static void worker_layers(ph_plan *p, ph_worker *w, bool *failed) {
  int64_t temp = 0;
  int64_t sum = 0;
  int64_t op = 0;
  for (int s = 0; s < p->nsegments; s++) {
    const ph_segment *t = &p->segment[s];
    temp = most(temp, t->pprog.temp * t->block_layers);
    sum = most(sum, t->prog.grad * t->block_layers);
    op = most(op, most(t->prog.op_scratch, t->pprog.op_scratch));
  }
  w->temp = take(p, temp, failed);
  w->sum = take(p, sum, failed);
  w->op = take(p, op, failed);
}

static void worker_memory(ph_plan *p, ph_worker *w, bool *failed) {
  size_t n = (size_t)p->nsegments + 1;
  char ***list[] = {&w->tape, &w->kept, &w->scratch, &w->cot[0], &w->cot[1], &w->seq, &w->g};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    *list[i] = ph_mem_new(n, sizeof **list[i]);
    *failed |= !*list[i];
  }
  if (*failed) {
    return;
  }
  int64_t rows = p->tile * most(p->ir->output.pos, 1);
  w->x = take(p, p->tile * features(p->ir->input), failed);
  w->g[0] = take(p, p->tile * features(p->ir->input), failed);
  w->target = take(p, p->ir->loss == PH_LOSS_MSE ? p->tile * features(p->ir->output) : 0, failed);
  w->label = ph_mem_new((size_t)rows, sizeof *w->label);
  w->hit = ph_mem_new((size_t)rows, sizeof *w->hit);
  w->loss = ph_mem_new((size_t)rows, sizeof *w->loss);
  w->norm = ph_mem_new((size_t)p->tile, sizeof *w->norm);
  *failed |= !w->label || !w->hit || !w->loss || !w->norm;
  for (int s = 0; s < p->nsegments; s++) {
    worker_segment(p, w, s, failed);
  }
  worker_layers(p, w, failed);
}

static void worker_release(const ph_plan *p, ph_worker *w) {
  char **list[] = {w->tape, w->kept, w->scratch, w->cot[0], w->cot[1], w->seq, w->g};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    for (int s = 0; list[i] && s <= p->nsegments; s++) {
      ph_mem_free(list[i][s]);
    }
    ph_mem_free(list[i]);
  }
  void *one[] = {w->x, w->target, w->label, w->loss, w->norm, w->hit, w->temp, w->sum, w->op};
  for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
    ph_mem_free(one[i]);
  }
}

/* Layers of one task of the layer phase: what fits the target, at least one, at most sixteen. */
static int block_layers(const ph_plan *p, const ph_segment *t) {
  int64_t bytes = (t->pprog.temp + t->pprog.keep + 2 * t->prog.grad) * (int64_t)p->size;
  int64_t n = bytes ? TEMP_TARGET / bytes : 1;
  n = n < 1 ? 1 : n > 16 ? 16 : n;
  return (int)(n < t->layers ? n : t->layers);
}

static void make_blocks(ph_plan *p, bool *failed) {
  for (int s = 0; s < p->nsegments; s++) {
    p->segment[s].block_layers = block_layers(p, &p->segment[s]);
    p->nblocks += (int)((p->segment[s].layers + p->segment[s].block_layers - 1) / p->segment[s].block_layers);
  }
  p->block = ph_mem_new((size_t)p->nblocks, sizeof *p->block);
  *failed |= !p->block;
  int n = 0;
  for (int s = 0; s < p->nsegments && !*failed; s++) {
    const ph_segment *t = &p->segment[s];
    for (int64_t l = 0; l < t->layers; l += t->block_layers) {
      int64_t left = t->layers - l;
      p->block[n++] = (ph_block){s, l, left < t->block_layers ? left : t->block_layers};
    }
  }
}

ph_status ph_plan_allocate(ph_plan *p, ph_err *err) {
  bool failed = false;
  make_blocks(p, &failed);
  for (int s = 0; s < p->nsegments; s++) {
    segment_memory(p, &p->segment[s], &failed);
  }
  for (int i = 0; i < p->nparams; i++) {
    param_memory(p, &p->param[i], &failed);
  }
  p->result = ph_mem_new((size_t)p->groups, sizeof *p->result);
  p->worker = ph_mem_new((size_t)p->workers, sizeof *p->worker);
  failed |= !p->result || !p->worker;
  for (int w = 0; w < p->workers && !failed; w++) {
    worker_memory(p, &p->worker[w], &failed);
  }
  return failed ? ph_err_set(err, PH_E_NOMEM, "out of memory: the plan does not fit") : PH_OK;
}

void ph_plan_release(ph_plan *p) {
  for (int w = 0; p->worker && w < p->workers; w++) {
    worker_release(p, &p->worker[w]);
  }
  ph_mem_free(p->worker);
  for (int i = 0; i < p->nparams; i++) {
    ph_mem_free(p->param[i].value);
    ph_mem_free(p->param[i].moment1);
    ph_mem_free(p->param[i].moment2);
    ph_mem_free(p->param[i].grad);
  }
  for (int s = 0; s < p->nsegments; s++) {
    ph_program_fini(&p->segment[s].prog);
    ph_pprog_fini(&p->segment[s].pprog);
    ph_mem_free(p->segment[s].keep);
    ph_mem_free(p->segment[s].pack);
    ph_mem_free(p->segment[s].grad);
  }
  ph_mem_free(p->param);
  ph_mem_free(p->segment);
  ph_mem_free(p->result);
  ph_mem_free(p->block);
}
