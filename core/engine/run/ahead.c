/* ahead.c - what the next iteration will read, asked for while this one computes.
 *
 * Each layer's weights (backward also its tape and its gradient) are met once a tile, so without this every layer starts by
 * waiting for the last-level cache. Records that will only be written are not asked for, and of a record to be read the
 * first half: measured, more costs more than it saves.
 */
#include "engine/run/frame.h"

enum { RECORD_SHARE = 2 }; /* one part in this many of a record is asked for */

/* Region i of what will be read, its elements from *at on; -1 after the last: backward the record before this one, then each
 * product's matrix of the next layer on the way, then backward that layer's gradient. Tied parameters stay where they are. */
static int64_t region(const ph_ahead *a, int i, const char **at) {
  const ph_frame *f = a->f;
  const ph_program *q = &f->segment->prog;
  int products = f->segment->tied ? 0 : q->nproducts;
  i -= a->back;
  if (i < 0) {
    *at = ph_plan_at(f->p, f->base[PH_SP_TAPE], -q->record);
    return q->record / RECORD_SHARE;
  }
  if (i < products) {
    *at = ph_plan_at(f->p, f->pack, a->back ? q->product[i].wn - q->pack : q->product[i].wt + q->pack);
    return q->product[i].N * q->product[i].K;
  }
  if (i == products && a->back && !f->segment->tied) {
    *at = ph_plan_at(f->p, f->grad, -q->grad);
    return q->grad;
  }
  return -1;
}

static int64_t lines(const ph_plan *p, int64_t elements) {
  return (elements * (int64_t)p->size + PH_AHEAD_LINE - 1) / PH_AHEAD_LINE;
}

void ph_ahead_next(ph_ahead *a) {
  int64_t elements = 0;
  while (elements == 0) {
    elements = region(a, a->region++, &a->at);
  }
  a->lines = elements > 0 ? lines(a->f->p, elements) : 0;
}

ph_ahead ph_ahead_start(const ph_frame *f, bool back, bool more, int instructions) {
  ph_ahead a = {.f = f, .back = back};
  if (!more || instructions == 0) {
    return a;
  }
  int64_t total = 0;
  const char *at = NULL;
  int64_t elements = 0;
  for (int i = 0; (elements = region(&a, i, &at)) >= 0; i++) {
    total += lines(f->p, elements);
  }
  a.share = total / instructions + 1;
  ph_ahead_next(&a);
  return a;
}
