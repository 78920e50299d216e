/* stream.c - the stream phase: a tile of samples through all iterations of all segments, forward and back.
 *
 * The tape holds one record per iteration. When it would outgrow its share only the states at window starts are kept, and a
 * window is run again before its backward pass.
 */
#include "engine/run/frame.h"

/* A tile on its way through a segment. */
typedef struct course {
  const ph_tile *t;
  int s;
  const ph_segment *segment;
  const ph_ir_segment *ir;
  const ph_lane *lane;
} course;

static course course_of(const ph_tile *t, int s) {
  const ph_segment *segment = &t->p->segment[s];
  return (course){t, s, segment, segment->prog.seg, &t->w->lane[s]};
}

/* ---- places ---- */

static int64_t elements(const course *c, ph_shape s) { return c->t->rows * s.pos * s.cols; }

static size_t bytes(const course *c, ph_shape s) { return (size_t)elements(c, s) * c->t->p->size; }

/* The tape record of iteration `it`; without keeping, two records take turns. */
static char *record_of(const course *c, int64_t it, bool keep) {
  int64_t number = keep ? it % c->segment->window : it & 1;
  return ph_plan_at(c->t->p, c->lane->tape, number * c->segment->prog.record);
}

/* The record that follows iteration `it`: its state is what the iteration gives. The last of a window is followed by a record
 * that belongs to none. */
static char *record_after(const course *c, int64_t it, bool keep) {
  return keep ? ph_plan_at(c->t->p, record_of(c, it, true), c->segment->prog.record) : record_of(c, it + 1, false);
}

/* The state that window n starts from, kept for running it again. */
static char *kept_state(const course *c, int64_t n) {
  return ph_plan_at(c->t->p, c->lane->kept, n * c->t->p->tile * c->ir->state.pos * c->ir->state.cols);
}

static ph_frame frame_of(const course *c, int64_t it, bool keep) {
  const ph_plan *p = c->t->p;
  const ph_border *border = &c->t->w->border[c->s];
  ph_frame f = {.t = c->t, .p = p, .segment = c->segment, .it = it};
  f.base[PH_SP_TAPE] = record_of(c, it, keep);
  f.base[PH_SP_NEXT] = record_after(c, it, keep);
  f.base[PH_SP_SCRATCH] = c->lane->scratch;
  f.base[PH_SP_COT] = c->lane->cot[it & 1];
  f.base[PH_SP_COTNEXT] = c->lane->cot[(it & 1) ^ 1];
  f.base[PH_SP_SHARE] = c->t->w->share;
  if (c->ir->driven) { /* place 0 is the state where that does not start from zero */
    int64_t in = (it + !c->ir->from_zero) * elements(c, c->ir->input);
    f.base[PH_SP_IN] = ph_plan_at(p, border[0].value, in);
    f.base[PH_SP_GIN] = ph_plan_at(p, border[0].cot, in);
  }
  if (c->ir->read >= 0) {
    int64_t out = it * elements(c, ph_shape_place(c->ir->out));
    f.base[PH_SP_OUT] = ph_plan_at(p, border[1].value, out);
    f.base[PH_SP_GOUT] = ph_plan_at(p, border[1].cot, out);
  }
  f.pack = ph_plan_at(p, c->segment->pack, (c->segment->tied ? 0 : it) * c->segment->prog.pack);
  return f;
}

static void copy_state(const course *c, char *to, const char *from) { memcpy(to, from, bytes(c, c->ir->state)); }

/* ---- forward ---- */

/* first: these iterations were not run before on this tile. */
static void run_forward(const course *c, int64_t from, int64_t to, bool keep, bool first) {
  const ph_program *q = &c->segment->prog;
  bool watch = first && (c->t->job->probe || c->t->job->mode == PH_MODE_DIAGNOSE);
  bool numbers = first && c->ir->nterms + c->ir->nobserves > 0;
  for (int64_t it = from; it < to; it++) {
    ph_frame f = frame_of(c, it, keep);
    ph_ahead a = ph_ahead_start(&f, false, c->segment->ahead && it + 1 < to, q->code.fwd.n);
    ph_frame_run(&f, &q->code.fwd, &a);
    if (numbers) {
      ph_numbers_forward(&f, c->s);
    }
    if (watch) {
      const char *port = q->port >= 0 ? ph_frame_at(&f, q->port) : NULL;
      ph_probe_forward(c->t, c->s, it, f.base[PH_SP_NEXT], port, port ? ph_frame_stride(&f, q->port) : 0);
    }
  }
}

/* The state that enters: zero, or what the segment before gave; driven, the start of that. */
static void enter(const course *c, bool keep) {
  char *first = record_of(c, 0, keep);
  if (c->ir->from_zero) {
    memset(first, 0, bytes(c, c->ir->state));
  } else {
    copy_state(c, first, c->t->w->border[c->s].value);
  }
  if (c->t->job->probe) {
    ph_probe_forward(c->t, c->s, -1, first, NULL, 0);
  }
}

/* What leaves: the last state, unless it was written iteration by iteration. */
static void leave(const course *c, bool keep) {
  if (c->ir->read < 0) {
    memcpy(c->t->w->border[c->s + 1].value, record_after(c, c->ir->repeat - 1, keep), bytes(c, c->ir->out));
  }
}

/* All windows but the last run on two records, leaving their first states behind; the last keeps its tape. */
static void windows_forward(const course *c) {
  int64_t window = c->segment->window;
  int64_t last = c->segment->windows - 1;
  enter(c, false);
  for (int64_t n = 0; n < last; n++) {
    copy_state(c, kept_state(c, n), record_of(c, n * window, false));
    run_forward(c, n * window, (n + 1) * window, false, true);
  }
  copy_state(c, kept_state(c, last), record_of(c, last * window, false)); /* which may be where it goes now */
  copy_state(c, c->lane->tape, kept_state(c, last));
  run_forward(c, last * window, c->ir->repeat, true, true);
}

void ph_stream_forward(const ph_tile *t, bool keep) {
  for (int s = 0; s < t->p->nsegments; s++) {
    course c = course_of(t, s);
    if (keep && c.segment->windows > 1) {
      windows_forward(&c);
    } else {
      enter(&c, keep);
      run_forward(&c, 0, c.ir->repeat, keep, true);
    }
    leave(&c, keep);
  }
}

/* ---- backward ---- */

static void probe_cot(const course *c, const ph_frame *f, int64_t at, int slot) {
  if (c->t->job->probe) {
    ph_probe_backward(c->t, c->s, at, ph_frame_at(f, slot), ph_frame_stride(f, slot));
  }
}

/* The result's cotangent enters where the program wants it: from the segment after, or zero when iterations are read. */
static void enter_cot(const course *c, const ph_frame *f, int slot) {
  ph_shape s = c->segment->prog.slot[slot].shape;
  if (c->ir->read < 0) {
    f->p->k->axpby(ph_frame_rows(f, s), s.cols, 1.0, c->t->w->border[c->s + 1].cot, s.cols, 0.0, NULL, 0,
                   ph_frame_at(f, slot), ph_frame_stride(f, slot));
  } else {
    ph_frame_clear(f, slot);
  }
}

/* The first state's cotangent goes to what it started as; a stream that looks at nothing of what enters leaves zero there. */
static void leave_cot(const course *c, const ph_frame *f, int slot) {
  ph_shape s = c->segment->prog.slot[slot].shape;
  char *to = c->t->w->border[c->s].cot;
  if (!c->ir->from_zero) {
    f->p->k->axpby(ph_frame_rows(f, s), s.cols, 1.0, ph_frame_at(f, slot), ph_frame_stride(f, slot), 0.0, NULL, 0, to,
                   s.cols);
  } else if (!c->ir->driven) {
    memset(to, 0, bytes(c, c->ir->in));
  }
}

/* A set of parameters has its whole gradient: is it finite? Looked at while it is still in the cache. */
static void check_gradient(const ph_frame *f) {
  ph_group_result *res = &f->p->result[f->t->group];
  res->finite = res->finite && f->p->k->first_nonfinite(f->segment->prog.grad, f->grad) < 0;
}

static void iteration_backward(const course *c, const ph_back *b, int64_t it, bool more) {
  const ph_segment *g = c->segment;
  bool last = it == c->ir->repeat - 1;
  int64_t set = c->t->group * g->layers + (g->tied ? 0 : it);
  ph_frame f = frame_of(c, it, true);
  f.grad = ph_plan_at(f.p, g->grad, set * g->prog.grad);
  f.acc = !c->t->fresh || (g->tied && !last);
  if (last) {
    enter_cot(c, &f, b->result_in);
    probe_cot(c, &f, c->ir->repeat, b->result_in);
  }
  ph_ahead a = ph_ahead_start(&f, true, g->ahead && more, b->list.n);
  ph_frame_run(&f, &b->list, &a);
  if (c->t->last && (!g->tied || it == 0)) {
    check_gradient(&f);
  }
  if (b->state_cot < 0) {
    return;
  }
  probe_cot(c, &f, it, b->state_cot);
  if (it == 0) {
    leave_cot(c, &f, b->state_cot);
  }
}

static void segment_backward(const course *c) {
  const ph_segment *g = c->segment;
  const ph_back *b = c->t->job->gx && g->prog.entry.list.n ? &g->prog.entry : &g->prog.bwd;
  for (int64_t n = g->windows - 1; n >= 0; n--) {
    int64_t from = n * g->window;
    int64_t to = n + 1 < g->windows ? from + g->window : c->ir->repeat;
    if (n + 1 < g->windows) {
      copy_state(c, c->lane->tape, kept_state(c, n));
      run_forward(c, from, to, true, false);
    }
    for (int64_t it = to - 1; it >= from; it--) {
      iteration_backward(c, b, it, it > from);
    }
  }
}

void ph_stream_backward(const ph_tile *t) {
  for (int s = t->p->nsegments - 1; s >= 0; s--) {
    course c = course_of(t, s);
    segment_backward(&c);
  }
}
