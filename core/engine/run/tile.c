/* tile.c - one tile: its samples gathered, run through the stream, its loss, its results handed out. */
#include "engine/run/plan_internal.h"

/* ---- samples in and out: a tile is [position][sample][feature] ---- */

static void gather(const ph_tile *t, const ph_source *from, ph_shape s, char *tile) {
  from->fill(from, s, t->job->idx + t->first, t->rows, tile);
}

/* What a tile holds, in the order in which the samples were asked for. */
static void scatter(const ph_tile *t, const char *tile, ph_shape s, const ph_tensor *out) {
  const ph_plan *p = t->p;
  for (int64_t r = 0; r < t->rows; r++) {
    char *sample = ph_plan_at(p, out->data, (t->job->first + t->first + r) * s.pos * s.cols);
    for (int64_t q = 0; q < s.pos; q++) {
      const char *from = ph_plan_at(p, tile, (q * t->rows + r) * s.cols);
      memcpy(ph_plan_at(p, sample, q * s.cols), from, (size_t)s.cols * p->size);
    }
  }
}

static void gather_labels(const ph_tile *t) {
  for (int64_t q = 0; q < t->p->ir->output.pos; q++) {
    for (int64_t r = 0; r < t->rows; r++) {
      t->w->label[q * t->rows + r] = t->job->data->label[t->job->idx[t->first + r]];
    }
  }
}

/* ---- loss: mean over positions; a sample is hit when its last position is ---- */

/* What the loss compares the output with. */
static void gather_wanted(const ph_tile *t) {
  if (t->p->ir->loss->need == PH_LOSS_LABELS) {
    gather_labels(t);
  } else {
    gather(t, &t->job->data->target, t->p->ir->output, t->w->target);
  }
}

static ph_loss_call loss_call(const ph_tile *t) {
  const ph_ir *ir = t->p->ir;
  const ph_border *end = &t->w->border[t->p->nsegments];
  ph_loss_call c = {.k = t->p->k,
                    .rows = ir->output.pos * t->rows,
                    .cols = ir->output.cols,
                    .y = end->value,
                    .label = t->w->label,
                    .target = t->w->target,
                    .scale = t->job->scale / (double)ir->output.pos,
                    .loss = t->w->loss,
                    .hit = t->w->hit,
                    .g = t->job->mode == PH_MODE_GRAD ? end->cot : NULL};
  for (int a = 0; a < PH_LOSS_ATTRS; a++) {
    c.attr[a] = ir->loss_attr[a];
    c.list[a] = ir->loss_table[a] < 0 ? NULL : ir->tables.at[ir->loss_table[a]].value;
  }
  return c;
}

static void run_loss(const ph_tile *t, ph_group_result *res) {
  const ph_loss *loss = t->p->ir->loss;
  ph_loss_call c = loss_call(t);
  if (!loss->run && c.g) { /* the loss has terms alone */
    memset(c.g, 0, (size_t)(c.rows * c.cols) * t->p->size);
  }
  if (!loss->run) {
    return;
  }
  gather_wanted(t);
  loss->run(&c);
  double sum = 0;
  for (int64_t r = 0; r < c.rows; r++) {
    sum += c.loss[r];
  }
  res->loss += sum / (double)t->p->ir->output.pos;
  for (int64_t r = c.rows - t->rows; loss->need == PH_LOSS_LABELS && r < c.rows; r++) {
    res->hits += c.hit[r];
  }
}

void ph_tile_run(const ph_tile *t) {
  const ph_plan *p = t->p;
  const ph_job *j = t->job;
  bool grad = j->mode == PH_MODE_GRAD;
  gather(t, &j->data->x, p->ir->input, t->w->border[0].value);
  if (grad) {
    ph_numbers_share(t);
  }
  ph_stream_forward(t, grad);
  if (j->out) {
    scatter(t, t->w->border[p->nsegments].value, p->ir->output, j->out);
  }
  if (j->mode != PH_MODE_DIAGNOSE) {
    run_loss(t, &p->result[t->group]);
  }
  if (grad) {
    ph_stream_backward(t);
  }
  if (j->gx) {
    scatter(t, t->w->border[0].cot, p->ir->input, j->gx);
  }
}
