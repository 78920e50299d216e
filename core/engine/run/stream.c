/* stream.c - the stream phase: a tile of samples through all iterations of all segments, forward and back.
 *
 * Addresses are a space's base for this iteration plus a slot's offset. The tape holds one record per iteration; when it
 * would outgrow its share only the states at window starts are kept and a window is run again before its backward pass.
 */
#include "engine/run/plan_internal.h"

typedef struct frame { /* one iteration of one segment on one tile */
  ph_plan *p;
  ph_worker *w;
  ph_segment *segment;
  char *base[PH_SP_COUNT];
  char *pack, *grad;
  bool acc; /* weight cotangents add to what is there */
} frame;

static inline char *address(const frame *f, int slot) {
  const ph_slot *s = &f->segment->prog.slot[slot];
  return ph_plan_at(f->p, f->base[s->space], s->off);
}

static inline int64_t stride(const frame *f, int slot) { return f->segment->prog.slot[slot].ld; }

static inline int64_t rows_of(const frame *f, ph_shape s) { return s.pos * f->w->rows; }

/* ---- reading ahead ---- */

/* What the next iteration will read (weights; backward also the tape and the gradient) is asked for while this one computes:
 * each layer's is met once a tile, so without this every layer starts by waiting for the last-level cache. Records that will
 * only be written are not asked for, and of a record to be read the first half: measured, more costs more than it saves. A
 * hint; no effect on results. */
typedef struct ahead {
  const char *at[12];
  int64_t lines[12];
  int regions, region;
  int64_t share; /* lines to ask for before each instruction */
} ahead;

static void ahead_add(ahead *a, const ph_plan *p, const char *base, int64_t elements) {
  if (a->regions < (int)(sizeof a->at / sizeof a->at[0]) && elements > 0) {
    a->at[a->regions] = base;
    a->lines[a->regions++] = (elements * (int64_t)p->size + 63) / 64;
  }
}

static void ahead_divide(ahead *a, int parts) {
  int64_t total = 0;
  for (int i = 0; i < a->regions; i++) {
    total += a->lines[i];
  }
  a->share = parts ? total / parts + 1 : 0;
}

static inline void ahead_ask(ahead *a) {
  for (int64_t n = a->share; n > 0 && a->region < a->regions; n--) {
    __builtin_prefetch(a->at[a->region], 0, 2);
    a->at[a->region] += 64;
    a->region += --a->lines[a->region] == 0;
  }
}

/* ---- instructions ---- */

static void run_product(const frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = rows_of(f, f->segment->prog.slot[i->out].shape);
  f->p->k->gemm(rows, q->N, q->K, address(f, i->a), stride(f, i->a), 1, ph_plan_at(f->p, f->pack, q->wt), q->N,
                i->d >= 0 ? address(f, i->d) : NULL, i->d >= 0 ? stride(f, i->d) : 0,
                q->wb >= 0 ? ph_plan_at(f->p, f->pack, q->wb) : NULL, address(f, i->out), stride(f, i->out));
}

static void run_weight_grad(const frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = rows_of(f, f->segment->prog.slot[i->b].shape);
  char *g = ph_plan_at(f->p, f->grad, q->grad);
  f->p->k->gemm(q->N, q->K, rows, address(f, i->a), 1, stride(f, i->a), address(f, i->b), stride(f, i->b),
                f->acc ? g : NULL, q->K, NULL, g, q->K);
}

static void run_data_grad(const frame *f, const ph_ins *i) {
  const ph_product *q = &f->segment->prog.product[i->product];
  int64_t rows = rows_of(f, f->segment->prog.slot[i->out].shape);
  f->p->k->gemm(rows, q->K, q->N, address(f, i->a), stride(f, i->a), 1, ph_plan_at(f->p, f->pack, q->wn), q->K,
                i->d >= 0 ? address(f, i->d) : NULL, i->d >= 0 ? stride(f, i->d) : 0, NULL, address(f, i->out),
                stride(f, i->out));
}

static void run_axpby(const frame *f, const ph_ins *i) {
  f->p->k->axpby(rows_of(f, i->out_shape), i->out_shape.cols, i->alpha, address(f, i->a), stride(f, i->a), i->beta,
                 i->b >= 0 ? address(f, i->b) : NULL, i->b >= 0 ? stride(f, i->b) : 0, address(f, i->out),
                 stride(f, i->out));
}

static void run_colsum(const frame *f, const ph_ins *i) {
  f->p->k->colsum(rows_of(f, i->out_shape), i->out_shape.cols, address(f, i->a), stride(f, i->a),
                  ph_plan_at(f->p, f->grad, f->segment->prog.weight[i->weight].grad), f->acc);
}

static void run_zero(const frame *f, const ph_ins *i) {
  ph_shape s = f->segment->prog.slot[i->out].shape;
  char *out = address(f, i->out);
  for (int64_t r = 0; r < rows_of(f, s); r++) {
    memset(ph_plan_at(f->p, out, r * stride(f, i->out)), 0, (size_t)s.cols * f->p->size);
  }
}

static ph_opnd operand(const frame *f, int in) {
  if (in >= 0) {
    return (ph_opnd){address(f, in), stride(f, in), 0};
  }
  const ph_weight *w = &f->segment->prog.weight[~in];
  return (ph_opnd){ph_plan_at(f->p, f->pack, w->pack), w->cols, 0};
}

static ph_shape call_shape(const frame *f, ph_shape s) {
  s.rows = ph_shape_is_param(s) ? s.rows : rows_of(f, s);
  return s;
}

static void run_op(const frame *f, const ph_ins *i) {
  ph_call c = {.k = f->p->k, .count = 1, .scratch = f->w->op};
  for (int a = 0; a < i->nargs; a++) {
    c.in[a] = operand(f, i->in[a]);
    c.in_shape[a] = call_shape(f, i->in_shape[a]);
  }
  memcpy(c.attr, i->attr, sizeof c.attr);
  c.out = operand(f, i->out);
  c.out_shape = call_shape(f, i->out_shape);
  if (i->aux >= 0) {
    c.aux = operand(f, i->aux);
  }
  if (i->kind == PH_INS_OP) {
    i->op->fwd(&c);
    return;
  }
  c.gout = operand(f, i->a);
  for (int a = 0; a < i->nargs; a++) {
    if (i->gin[a] == PH_NO_SLOT) {
      continue;
    }
    c.gin[a] = operand(f, i->gin[a]);
    c.acc[a] = i->acc[a];
    if (i->gin[a] < 0) { /* a parameter: its cotangent lies in the group's gradient */
      c.gin[a].p = ph_plan_at(f->p, f->grad, f->segment->prog.weight[~i->gin[a]].grad);
      c.acc[a] = f->acc;
    }
  }
  i->op->bwd(&c);
}

static void run_list(const frame *f, const ph_list *list, ahead *a) {
  ahead_divide(a, list->n);
  for (int n = 0; n < list->n; n++) {
    const ph_ins *i = &list->ins[n];
    ahead_ask(a);
    switch (i->kind) {
    case PH_INS_PRODUCT: run_product(f, i); break;
    case PH_INS_OP:
    case PH_INS_OP_BWD: run_op(f, i); break;
    case PH_INS_AXPBY: run_axpby(f, i); break;
    case PH_INS_WGRAD: run_weight_grad(f, i); break;
    case PH_INS_COLSUM: run_colsum(f, i); break;
    case PH_INS_DGRAD: run_data_grad(f, i); break;
    case PH_INS_ZERO: run_zero(f, i); break;
    }
  }
}

/* ---- one segment ---- */

static char *input_of(const ph_worker *w, int s) { return s == 0 ? w->x : ph_stream_output(w, s - 1); }

/* Number of the tape record of iteration `it`; without keeping, two records take turns. */
static int64_t record_number(const ph_segment *t, int64_t it, bool keep) { return keep ? it % t->window : it & 1; }

/* The record that follows iteration `it`: its state is what the iteration gives. */
static char *record_after(const ph_plan *p, const ph_worker *w, int s, int64_t it, bool keep) {
  const ph_segment *t = &p->segment[s];
  int64_t number = keep ? record_number(t, it, true) + 1 : record_number(t, it + 1, false);
  return ph_plan_at(p, w->tape[s], number * t->prog.record);
}

static frame frame_of(ph_plan *p, ph_worker *w, int s, int64_t it, bool keep) {
  ph_segment *t = &p->segment[s];
  frame f = {.p = p, .w = w, .segment = t};
  char *record = ph_plan_at(p, w->tape[s], record_number(t, it, keep) * t->prog.record);
  f.base[PH_SP_TAPE] = record;
  f.base[PH_SP_NEXT] = record_after(p, w, s, it, keep);
  f.base[PH_SP_SCRATCH] = w->scratch[s];
  f.base[PH_SP_COT] = w->cot[it & 1][s];
  f.base[PH_SP_COTNEXT] = w->cot[(it & 1) ^ 1][s];
  if (t->prog.seg->kind == PH_SEG_TIME) {
    int64_t in = it * w->rows * t->prog.seg->in.cols;
    f.base[PH_SP_IN] = ph_plan_at(p, input_of(w, s), in);
    f.base[PH_SP_GIN] = ph_plan_at(p, w->g[s], in);
    int64_t out = it * w->rows * t->prog.seg->out.cols;
    f.base[PH_SP_OUT] = ph_plan_at(p, w->seq[s], out);
    f.base[PH_SP_GOUT] = ph_plan_at(p, w->g[s + 1], out);
  }
  f.pack = ph_plan_at(p, t->pack, (t->tied ? 0 : it) * t->prog.pack);
  return f;
}

static void copy_state(const ph_plan *p, const ph_worker *w, const ph_segment *t, char *to, const char *from) {
  memcpy(to, from, (size_t)(w->rows * t->prog.seg->state.pos * t->prog.seg->state.cols) * p->size);
}

static ahead ahead_forward(const frame *f, int64_t it, int64_t to) {
  ahead a = {0};
  const ph_segment *t = f->segment;
  if (t->tied || it + 1 >= to) {
    return a;
  }
  const char *pack = ph_plan_at(f->p, f->pack, t->prog.pack);
  for (int i = 0; i < t->prog.nproducts; i++) {
    ahead_add(&a, f->p, ph_plan_at(f->p, pack, t->prog.product[i].wt), t->prog.product[i].N * t->prog.product[i].K);
  }
  return a;
}

static ahead ahead_backward(const frame *f, int64_t it, int64_t from) {
  ahead a = {0};
  const ph_segment *t = f->segment;
  if (it <= from) {
    return a;
  }
  ahead_add(&a, f->p, ph_plan_at(f->p, f->base[PH_SP_TAPE], -t->prog.record), t->prog.record / 2);
  for (int i = 0; i < t->prog.nproducts && !t->tied; i++) {
    ahead_add(&a, f->p, ph_plan_at(f->p, f->pack, t->prog.product[i].wn - t->prog.pack),
              t->prog.product[i].N * t->prog.product[i].K);
  }
  if (!t->tied) {
    ahead_add(&a, f->p, ph_plan_at(f->p, f->grad, -t->prog.grad), t->prog.grad);
  }
  return a;
}

static void run_forward(ph_plan *p, ph_worker *w, int s, int64_t from, int64_t to, bool keep) {
  ph_segment *t = &p->segment[s];
  for (int64_t it = from; it < to; it++) {
    frame f = frame_of(p, w, s, it, keep);
    ahead a = ahead_forward(&f, it, to);
    run_list(&f, &t->prog.fwd, &a);
    if (!w->replay && (p->job.probe || p->job.mode == PH_MODE_DIAGNOSE)) {
      const char *port = t->prog.port >= 0 ? address(&f, t->prog.port) : NULL;
      ph_probe_forward(p, w, s, it, f.base[PH_SP_NEXT], port, port ? stride(&f, t->prog.port) : 0);
    }
  }
}

/* The state that enters: zero over time, else what the segment before gave. */
static void enter(ph_plan *p, ph_worker *w, int s, bool keep) {
  ph_segment *t = &p->segment[s];
  char *first = ph_plan_at(p, w->tape[s], record_number(t, 0, keep) * t->prog.record);
  if (t->prog.seg->kind == PH_SEG_TIME) {
    memset(first, 0, (size_t)(w->rows * t->prog.seg->state.cols) * p->size);
  } else {
    copy_state(p, w, t, first, input_of(w, s));
  }
  if (p->job.probe) {
    ph_probe_forward(p, w, s, -1, first, NULL, 0);
  }
}

/* All windows but the last run on two records, leaving their first states behind; the last keeps its tape. */
static void segment_forward(ph_plan *p, ph_worker *w, int s, bool keep) {
  ph_segment *t = &p->segment[s];
  int64_t repeat = t->prog.seg->repeat;
  if (!keep || t->windows == 1) {
    enter(p, w, s, keep);
    run_forward(p, w, s, 0, repeat, keep);
    return;
  }
  enter(p, w, s, false);
  int64_t state = p->tile * t->prog.seg->state.pos * t->prog.seg->state.cols;
  for (int64_t n = 0; n < t->windows; n++) {
    char *kept = ph_plan_at(p, w->kept[s], n * state);
    copy_state(p, w, t, kept, ph_plan_at(p, w->tape[s], record_number(t, n * t->window, false) * t->prog.record));
    if (n + 1 < t->windows) {
      run_forward(p, w, s, n * t->window, (n + 1) * t->window, false);
    } else {
      copy_state(p, w, t, w->tape[s], kept);
      run_forward(p, w, s, n * t->window, repeat, true);
    }
  }
}

char *ph_stream_output(const ph_worker *w, int s) { return w->seq[s]; }

static void leave(ph_plan *p, ph_worker *w, int s, bool keep) {
  ph_segment *t = &p->segment[s];
  if (t->prog.seg->read >= 0) {
    return; /* written step by step */
  }
  const char *state = record_after(p, w, s, t->prog.seg->repeat - 1, keep);
  memcpy(w->seq[s], state, (size_t)(w->rows * t->prog.seg->out.pos * t->prog.seg->out.cols) * p->size);
}

void ph_stream_forward(ph_plan *p, ph_worker *w, bool keep) {
  for (int s = 0; s < p->nsegments; s++) {
    segment_forward(p, w, s, keep);
    leave(p, w, s, keep);
  }
}

/* ---- backward ---- */

static const ph_back *back_of(const ph_program *q, bool entry) {
  return entry && q->entry.list.n ? &q->entry : &q->bwd;
}

static void probe_cot(const frame *f, int s, int64_t at, int slot) {
  if (f->p->job.probe) {
    ph_shape shape = f->segment->prog.slot[slot].shape;
    ph_probe_backward(f->p, f->w, s, at, address(f, slot), stride(f, slot), shape.cols);
  }
}

/* The result's cotangent enters where the program wants it: from the segment after, or zero when steps are read. */
static void enter_cot(const frame *f, int s, const ph_back *b) {
  const ph_slot *slot = &f->segment->prog.slot[b->result_in];
  int64_t rows = rows_of(f, slot->shape);
  char *to = address(f, b->result_in);
  if (f->segment->prog.seg->read < 0) {
    f->p->k->axpby(rows, slot->shape.cols, 1.0, f->w->g[s + 1], slot->shape.cols, 0.0, NULL, 0, to, slot->ld);
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    memset(ph_plan_at(f->p, to, r * slot->ld), 0, (size_t)slot->shape.cols * f->p->size);
  }
}

static void leave_cot(const frame *f, int s, const ph_back *b) {
  const ph_slot *slot = &f->segment->prog.slot[b->state_cot];
  f->p->k->axpby(rows_of(f, slot->shape), slot->shape.cols, 1.0, address(f, b->state_cot), slot->ld, 0.0, NULL, 0,
                 f->w->g[s], slot->shape.cols);
}

static void segment_backward(ph_plan *p, ph_worker *w, int s, int group, bool fresh, bool entry) {
  ph_segment *t = &p->segment[s];
  const ph_back *b = back_of(&t->prog, entry);
  int64_t repeat = t->prog.seg->repeat;
  int64_t state = p->tile * t->prog.seg->state.pos * t->prog.seg->state.cols;
  for (int64_t n = t->windows - 1; n >= 0; n--) {
    int64_t from = n * t->window;
    int64_t to = from + t->window < repeat ? from + t->window : repeat;
    if (n + 1 < t->windows) {
      w->replay = true; /* probes have seen the first pass */
      copy_state(p, w, t, w->tape[s], ph_plan_at(p, w->kept[s], n * state));
      run_forward(p, w, s, from, to, true);
      w->replay = false;
    }
    for (int64_t it = to - 1; it >= from; it--) {
      frame f = frame_of(p, w, s, it, true);
      f.grad = ph_plan_at(p, t->grad, ((int64_t)group * t->layers + (t->tied ? 0 : it)) * t->prog.grad);
      f.acc = !fresh || (t->tied && it != repeat - 1);
      if (it == repeat - 1) {
        enter_cot(&f, s, b);
        probe_cot(&f, s, repeat, b->result_in);
      }
      ahead a = ahead_backward(&f, it, from);
      run_list(&f, &b->list, &a);
      if (b->state_cot >= 0) {
        probe_cot(&f, s, it, b->state_cot);
        if (it == 0 && t->prog.seg->kind != PH_SEG_TIME) {
          leave_cot(&f, s, b);
        }
      }
    }
  }
}

void ph_stream_backward(ph_plan *p, ph_worker *w, int group, bool fresh, bool entry) {
  for (int s = p->nsegments - 1; s >= 0; s--) {
    segment_backward(p, w, s, group, fresh, entry);
  }
}
