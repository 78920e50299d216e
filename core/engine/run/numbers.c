/* numbers.c - what an iteration gives beside its state: terms of the loss, observed numbers. Each is one number a sample. */
#include "engine/run/frame.h"

/* The number of sample r in a slot. */
static double number_of(const ph_frame *f, int slot, int64_t r) {
  ph_tensor t = {.dtype = f->p->k->dtype, .rank = 1, .dim = {f->t->rows}, .data = ph_frame_at(f, slot)};
  return ph_tensor_get(&t, r * ph_frame_stride(f, slot));
}

static void add_terms(const ph_frame *f) {
  const ph_program *q = &f->segment->prog;
  for (int i = 0; i < q->seg->nterms; i++) {
    double sum = 0;
    for (int64_t r = 0; r < f->t->rows; r++) {
      sum += number_of(f, q->code.value[q->graph.term[i]], r);
    }
    f->p->result[f->t->group].loss += q->seg->term[i].weight * sum;
  }
}

/* out (n, repeat, observations) */
static void record(const ph_frame *f, const ph_tensor *out) {
  const ph_program *q = &f->segment->prog;
  int64_t first = f->t->job->first + f->t->first;
  for (int64_t r = 0; r < f->t->rows; r++) {
    double *to = (double *)out->data + ((first + r) * q->seg->repeat + f->it) * q->seg->nobserves;
    for (int i = 0; i < q->seg->nobserves; i++) {
      to[i] = number_of(f, q->code.value[q->graph.observe[i]], r);
    }
  }
}

void ph_numbers_forward(const ph_frame *f, int s) {
  const ph_job *j = f->t->job;
  if (j->mode != PH_MODE_DIAGNOSE) {
    add_terms(f);
  }
  if (j->probe && j->probe->segment == s && j->probe->observe) {
    record(f, j->probe->observe);
  }
}

void ph_numbers_share(const ph_tile *t) {
  ph_tensor share = {.dtype = t->p->k->dtype, .rank = 1, .dim = {t->rows}, .data = t->w->share};
  for (int64_t r = 0; r < t->rows; r++) {
    ph_tensor_set(&share, r, t->job->scale);
  }
}
