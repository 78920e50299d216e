/* memory.c - everything a plan will ever need, taken once: parameters, gradients of each group, packs, workers' memory. */
#include <math.h>

#include "base/mem.h"
#include "engine/run/plan_internal.h"

enum {
  TEMP_TARGET = 256 * 1024, /* bytes of a block of layers: half a small second-level cache */
  BLOCK_MOST = 16,          /* layers of a block: tasks enough for all workers */
  SLACK = 16                /* elements behind every array */
};

static char *take(const ph_plan *p, int64_t elements, bool *failed) {
  char *m = *failed || elements < 0 ? NULL : ph_mem_new((size_t)elements + SLACK, p->size);
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

static void lane_memory(const ph_plan *p, const ph_segment *t, ph_lane *lane, bool *failed) {
  const ph_program *q = &t->prog;
  int64_t state = p->tile * features(q->seg->state);
  int64_t last = most(q->record, p->tile * features(q->graph.node[q->graph.result].shape) + SLACK);
  lane->tape = take(p, t->window * q->record + last, failed);
  lane->kept = take(p, t->windows > 1 ? t->windows * state : 0, failed);
  lane->scratch = take(p, q->scratch, failed);
  lane->cot[0] = take(p, q->cot, failed);
  lane->cot[1] = take(p, q->cot, failed);
}

static void border_memory(const ph_plan *p, ph_shape s, ph_border *border, bool *failed) {
  border->value = take(p, p->tile * features(s), failed);
  border->cot = take(p, p->tile * features(s), failed);
}

static void worker_layers(ph_plan *p, ph_worker *w, bool *failed) {
  int64_t temp = 0;
  int64_t sum = 0;
  int64_t op = 0;
  for (int s = 0; s < p->nsegments; s++) {
    const ph_segment *t = &p->segment[s];
    temp = most(temp, t->pprog.temp * t->block_layers);
    sum = most(sum, t->prog.grad * t->block_layers);
    op = most(op, most(t->prog.code.op_scratch, t->pprog.code.op_scratch));
  }
  w->temp = take(p, temp, failed);
  w->sum = take(p, sum, failed);
  w->op = take(p, op, failed);
}

static void worker_loss(const ph_plan *p, ph_worker *w, bool *failed) {
  size_t rows = (size_t)(p->tile * most(p->ir->output.pos, 1));
  w->target = take(p, p->ir->loss->need == PH_LOSS_TARGETS ? p->tile * features(p->ir->output) : 0, failed);
  w->share = take(p, p->tile, failed);
  w->label = ph_mem_new(rows, sizeof *w->label);
  w->hit = ph_mem_new(rows, sizeof *w->hit);
  w->loss = ph_mem_new(rows, sizeof *w->loss);
  w->norm = ph_mem_new((size_t)p->tile, sizeof *w->norm);
  *failed |= !w->label || !w->hit || !w->loss || !w->norm;
}

static void worker_memory(ph_plan *p, ph_worker *w, bool *failed) {
  size_t n = (size_t)p->nsegments;
  w->lane = ph_mem_new(n, sizeof *w->lane);
  w->border = ph_mem_new(n + 1, sizeof *w->border);
  *failed |= !w->lane || !w->border;
  if (*failed) {
    return;
  }
  border_memory(p, p->ir->input, &w->border[0], failed);
  for (size_t s = 0; s < n; s++) {
    lane_memory(p, &p->segment[s], &w->lane[s], failed);
    border_memory(p, p->ir->segment[s].out, &w->border[s + 1], failed);
  }
  worker_loss(p, w, failed);
  worker_layers(p, w, failed);
}

static void free_all(void *const *block, size_t n) {
  for (size_t i = 0; i < n; i++) {
    ph_mem_free(block[i]);
  }
}

static void worker_release(const ph_plan *p, ph_worker *w) {
  for (int s = 0; w->lane && s < p->nsegments; s++) {
    const ph_lane *l = &w->lane[s];
    free_all((void *[]){l->tape, l->kept, l->scratch, l->cot[0], l->cot[1]}, 5);
  }
  for (int s = 0; w->border && s <= p->nsegments; s++) {
    free_all((void *[]){w->border[s].value, w->border[s].cot}, 2);
  }
  free_all(
      (void *[]){w->lane, w->border, w->target, w->share, w->label, w->loss, w->norm, w->hit, w->temp, w->sum, w->op},
      11);
}

/* Layers of one task of the layer phase: what fits the target, at least one. */
static int fitting_layers(const ph_plan *p, const ph_segment *t) {
  int64_t bytes = (t->pprog.temp + t->pprog.keep + 2 * t->prog.grad) * (int64_t)p->size;
  int64_t n = bytes ? TEMP_TARGET / bytes : 1;
  n = n < 1 ? 1 : n > BLOCK_MOST ? BLOCK_MOST : n;
  return (int)(n < t->layers ? n : t->layers);
}

/* Segments of a chain go through the layer phase together: the smallest number is that of all. */
static void choose_blocks(ph_plan *p, ph_segment *head) {
  int least = fitting_layers(p, head);
  for (const ph_segment *t = head->next; t; t = t->next) {
    int n = fitting_layers(p, t);
    least = n < least ? n : least;
  }
  for (ph_segment *t = head; t; t = t->next) {
    t->block_layers = least;
  }
  p->nblocks += (int)((head->layers + least - 1) / least);
}

static void make_blocks(ph_plan *p, bool *failed) {
  for (int s = 0; s < p->nsegments; s++) {
    if (!p->segment[s].follows) {
      choose_blocks(p, &p->segment[s]);
    }
  }
  p->block = ph_mem_new((size_t)p->nblocks, sizeof *p->block);
  *failed |= !p->block;
  int n = 0;
  for (int s = 0; s < p->nsegments && !*failed; s++) {
    const ph_segment *t = &p->segment[s];
    for (int64_t l = 0; l < t->layers && !t->follows; l += t->block_layers) {
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
    const ph_param *q = &p->param[i];
    free_all((void *[]){q->value, q->moment1, q->moment2, q->grad}, 4);
  }
  for (int s = 0; s < p->nsegments; s++) {
    ph_segment *t = &p->segment[s];
    ph_program_fini(&t->prog);
    ph_pprog_fini(&t->pprog);
    free_all((void *[]){t->param, t->keep, t->pack, t->grad}, 4);
  }
  free_all((void *[]){p->param, p->segment, p->result, p->block}, 4);
}
