/* loop.c - running a plan: batches cut into fixed groups, groups into tiles; loss; the two regions of a training step. */
#include <assert.h>
#include <math.h>
#include <time.h>

#include "engine/run/plan_internal.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- data in and out of a tile: [position][sample][feature] ---- */

static void move_rows(const ph_plan *p, const ph_worker *w, ph_shape s, char *tile, const ph_tensor *t, bool in) {
  int64_t width = s.pos * s.cols;
  for (int64_t r = 0; r < w->rows; r++) {
    int64_t row = in ? p->job.idx[w->first + r] : p->job.first + w->first + r;
    char *sample = ph_plan_at(p, t->data, row * width);
    for (int64_t q = 0; q < s.pos; q++) {
      char *here = ph_plan_at(p, tile, (q * w->rows + r) * s.cols);
      char *there = ph_plan_at(p, sample, q * s.cols);
      memcpy(in ? here : there, in ? there : here, (size_t)s.cols * p->size);
    }
  }
}

static void gather_labels(const ph_plan *p, ph_worker *w) {
  for (int64_t q = 0; q < p->ir->output.pos; q++) {
    for (int64_t r = 0; r < w->rows; r++) {
      w->label[q * w->rows + r] = p->job.data->label[p->job.idx[w->first + r]];
    }
  }
}

/* ---- loss of a tile: mean over positions; a sample is hit when its last position is ---- */

static void tile_loss(ph_plan *p, ph_worker *w, ph_group_result *res) {
  ph_shape out = p->ir->output;
  int64_t rows = out.pos * w->rows;
  const char *y = ph_stream_output(w, p->nsegments - 1);
  char *g = p->job.mode == PH_MODE_GRAD ? w->g[p->nsegments] : NULL;
  double scale = p->job.scale / (double)out.pos;
  if (p->ir->loss == PH_LOSS_NONE) {
    return;
  }
  if (p->ir->loss == PH_LOSS_SOFTMAX_CE) {
    gather_labels(p, w);
    p->k->softmax_ce(rows, out.cols, y, out.cols, w->label, scale, w->loss, w->hit, g, out.cols);
    for (int64_t r = rows - w->rows; r < rows; r++) {
      res->hits += w->hit[r];
    }
  } else {
    move_rows(p, w, out, w->target, p->job.data->target, true);
    p->k->mse(rows, out.cols, y, out.cols, w->target, out.cols, scale, w->loss, g, out.cols);
  }
  double sum = 0;
  for (int64_t r = 0; r < rows; r++) {
    sum += w->loss[r];
  }
  res->loss += sum / (double)out.pos;
}

static void check_gradient(const ph_plan *p, int group, ph_group_result *res) {
  for (int s = 0; s < p->nsegments && res->finite; s++) {
    const ph_segment *t = &p->segment[s];
    int64_t n = t->layers * t->prog.grad;
    res->finite = p->k->first_nonfinite(n, ph_plan_at(p, t->grad, group * n)) < 0;
  }
}

static void run_tile(ph_plan *p, ph_worker *w, bool fresh) {
  const ph_job *j = &p->job;
  ph_group_result *res = &p->result[w->group];
  bool grad = j->mode == PH_MODE_GRAD;
  move_rows(p, w, p->ir->input, w->x, j->data->x, true);
  ph_stream_forward(p, w, grad);
  if (j->out) {
    move_rows(p, w, p->ir->output, ph_stream_output(w, p->nsegments - 1), j->out, false);
  }
  if (j->mode != PH_MODE_DIAGNOSE) {
    tile_loss(p, w, res);
  }
  if (grad) {
    ph_stream_backward(p, w, w->group, fresh, j->gx != NULL);
    if (j->gx) {
      move_rows(p, w, p->ir->input, w->g[0], j->gx, false);
    }
  }
}

static void group_task(void *plan, int group, int worker) {
  ph_plan *p = plan;
  if (ph_interrupt_get()) {
    p->stopped = 1;
    return;
  }
  ph_worker *w = &p->worker[worker];
  int64_t from = group * p->group;
  int64_t to = from + p->group < p->job.n ? from + p->group : p->job.n;
  p->result[group] = (ph_group_result){.finite = true, .bad_segment = -1, .bad_step = -1};
  w->group = group;
  for (int64_t at = from; at < to; at += p->tile) {
    w->first = at;
    w->rows = to - at < p->tile ? to - at : p->tile;
    run_tile(p, w, at == from && !p->job.accumulate);
  }
  if (p->job.mode == PH_MODE_GRAD) {
    check_gradient(p, group, &p->result[group]);
  }
}

/* ---- rounds of at most one batch ---- */

static void note_bad(ph_result *res, const ph_group_result *g) {
  bool earlier = g->bad_segment >= 0 && (res->bad_segment < 0 || g->bad_segment < res->bad_segment ||
                                         (g->bad_segment == res->bad_segment && g->bad_step < res->bad_step));
  if (earlier) {
    res->bad_segment = g->bad_segment;
    res->bad_step = g->bad_step;
  }
}

static void add_results(const ph_plan *p, int groups, ph_result *res) {
  for (int g = 0; g < groups; g++) {
    res->loss += p->result[g].loss;
    res->hits += p->result[g].hits;
    res->finite &= p->result[g].finite;
    note_bad(res, &p->result[g]);
  }
}

static ph_status run_rounds(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  *res = (ph_result){.finite = true, .n = n, .bad_segment = -1, .bad_step = -1, .grad_norm = NAN};
  double start = now();
  p->stopped = 0;
  for (int64_t at = 0; at < n; at += p->batch) {
    p->job = *job;
    p->job.idx = job->idx + at;
    p->job.n = n - at < p->batch ? n - at : p->batch;
    p->job.first = at;
    p->job.scale = 1.0 / (double)n;
    p->job.accumulate = at > 0;
    int groups = (int)((p->job.n + p->group - 1) / p->group);
    ph_pool_run(p->pool, groups, group_task, p);
    if (p->stopped) {
      return ph_err_set(err, PH_E_INTERRUPTED, "interrupted");
    }
    add_results(p, groups, res);
  }
  p->seconds_stream += now() - start;
  res->loss = n ? res->loss / (double)n : NAN;
  res->finite &= isfinite(res->loss);
  return PH_OK;
}

/* A loss that is not finite: look for the first segment and iteration whose state is not. */
static ph_status diagnose(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  if (res->finite) {
    return PH_OK;
  }
  ph_job again = {.data = job->data, .idx = job->idx, .mode = PH_MODE_DIAGNOSE};
  ph_result found;
  ph_status st = run_rounds(p, &again, n, &found, err);
  if (!st) {
    res->bad_segment = found.bad_segment;
    res->bad_step = found.bad_step;
  }
  return st;
}

/* ---- checks ---- */

static ph_status check_rows(const ph_plan *p, const char *what, const ph_tensor *t, ph_shape s, ph_err *err) {
  if (t->dtype != p->ir->dtype || t->rank != 2 || t->dim[1] != s.pos * s.cols) {
    char have[96];
    return ph_err_set(err, t->dtype != p->ir->dtype ? PH_E_DTYPE : PH_E_SHAPE, "%s must be %s (n, %lld), got %s", what,
                      ph_dtype_name(p->ir->dtype), (long long)(s.pos * s.cols),
                      ph_tensor_describe(t, have, sizeof have));
  }
  return PH_OK;
}

static ph_status check_labels(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_err *err) {
  if (!data->label) {
    return ph_err_set(err, PH_E_ARG, "the loss softmax_cross_entropy needs labels");
  }
  for (int64_t i = 0; i < n; i++) {
    int32_t y = data->label[idx[i]];
    if (y < 0 || y >= p->ir->output.cols) {
      return ph_err_set(err, PH_E_ARG, "label %d of sample %d is outside 0..%lld", (int)y, (int)idx[i] + 1,
                        (long long)p->ir->output.cols - 1);
    }
  }
  return PH_OK;
}

static ph_status check_data(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_err *err) {
  ph_status st = check_rows(p, "data", data->x, p->ir->input, err);
  for (int64_t i = 0; !st && i < n; i++) {
    if (idx[i] < 0 || idx[i] >= data->x->dim[0]) {
      st =
          ph_err_set(err, PH_E_ARG, "sample number %d is outside 1..%lld", (int)idx[i] + 1, (long long)data->x->dim[0]);
    }
  }
  if (st || p->ir->loss == PH_LOSS_NONE) {
    return st;
  }
  if (p->ir->loss == PH_LOSS_SOFTMAX_CE) {
    return check_labels(p, data, idx, n, err);
  }
  return data->target ? check_rows(p, "targets", data->target, p->ir->output, err)
                      : ph_err_set(err, PH_E_ARG, "the loss mse needs targets");
}

/* ---- public ---- */

ph_status ph_plan_eval(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *out, ph_result *res,
                       ph_err *err) {
  ph_status st = check_data(p, data, idx, n, err);
  st = st || !out ? st : check_rows(p, "the output tensor", out, p->ir->output, err);
  if (st) {
    return st;
  }
  ph_job job = {.data = data, .idx = idx, .mode = PH_MODE_EVAL, .out = out};
  st = run_rounds(p, &job, n, res, err);
  return st || p->ir->loss == PH_LOSS_NONE ? st : diagnose(p, &job, n, res, err);
}

static ph_status gradient(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  ph_status st = check_data(p, job->data, job->idx, n, err);
  if (!st && p->ir->loss == PH_LOSS_NONE) {
    st = ph_err_set(err, PH_E_ARG, "a gradient needs a loss, the model has none");
  }
  st = st ? st : run_rounds(p, job, n, res, err);
  return st ? st : diagnose(p, job, n, res, err);
}

/* Groups that hold gradients after n samples were run. */
static int64_t groups_of(const ph_plan *p, int64_t n) {
  return ((n < p->batch ? n : p->batch) + p->group - 1) / p->group;
}

static void layers(ph_plan *p, ph_update u) {
  double start = now();
  p->update = u;
  ph_layers_run(p);
  p->seconds_layers += now() - start;
}

ph_status ph_plan_grad(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *gx, ph_result *res,
                       ph_err *err) {
  ph_status st = gx ? check_rows(p, "the input's cotangent", gx, p->ir->input, err) : PH_OK;
  ph_job job = {.data = data, .idx = idx, .mode = PH_MODE_GRAD, .gx = gx};
  st = st ? st : gradient(p, &job, n, res, err);
  if (!st) {
    layers(p, (ph_update){.groups = groups_of(p, n), .have_grad = true, .store_grad = true, .shrink = 1.0});
  }
  return st;
}

static double stored_norm(const ph_plan *p) {
  double sum = 0;
  for (int i = 0; i < p->nparams; i++) {
    const ph_param *q = &p->param[i];
    if (q->rates.frozen) {
      continue;
    }
    sum += p->k->sumsq(q->layers * q->rows * q->cols, q->grad);
  }
  return sqrt(sum);
}

/* The step's constants of every parameter, with the rates of its own. */
static void prepare_rates(ph_plan *p, const ph_optim *o) {
  double t = (double)(p->steps + 1);
  double c1 = 1.0 / (1.0 - pow(o->beta1, t));
  double c2 = 1.0 / (1.0 - pow(o->beta2, t));
  for (int i = 0; i < p->nparams; i++) {
    const ph_rates *r = &p->param[i].rates;
    p->param[i].adam = (ph_adam){.lr = o->lr * r->lr,
                                 .beta1 = o->beta1,
                                 .beta2 = o->beta2,
                                 .eps = o->eps,
                                 .weight_decay = isnan(r->weight_decay) ? o->weight_decay : r->weight_decay,
                                 .c1 = c1,
                                 .c2 = c2};
  }
}

ph_status ph_plan_step(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, const ph_optim *o,
                       ph_result *res, ph_err *err) {
  if (n < 1 || n > p->batch) {
    return ph_err_set(err, PH_E_ARG, "a step takes 1..%lld samples, got %lld", (long long)p->batch, (long long)n);
  }
  ph_job job = {.data = data, .idx = idx, .mode = PH_MODE_GRAD};
  ph_status st = gradient(p, &job, n, res, err);
  if (st || !res->finite) {
    return st;
  }
  prepare_rates(p, o);
  ph_update u = {.optim = o, .groups = groups_of(p, n), .have_grad = true, .shrink = 1.0, .forward = true};
  if (o->clip > 0) {
    layers(p, (ph_update){.groups = u.groups, .have_grad = true, .store_grad = true, .shrink = 1.0});
    res->grad_norm = stored_norm(p);
    u.have_grad = false;
    u.from_store = true;
    u.shrink = res->grad_norm > o->clip ? o->clip / res->grad_norm : 1.0;
  }
  layers(p, u);
  p->steps++;
  return PH_OK;
}

ph_status ph_plan_probe(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, const ph_probe *probe,
                        ph_result *res, ph_err *err) {
  if (probe->segment < 0 || probe->segment >= p->nsegments) {
    return ph_err_set(err, PH_E_ARG, "segment %d is outside 1..%d", probe->segment + 1, p->nsegments);
  }
  const ph_segment *t = &p->segment[probe->segment];
  if (probe->port && t->prog.port < 0) {
    return ph_err_set(err, PH_E_ARG,
                      "segment %d has no port terms apart from its state channel (or the plan was made without probes)",
                      probe->segment + 1);
  }
  int64_t columns = t->prog.seg->repeat + 1;
  ph_tensor *sq = NULL;
  ph_status st = ph_tensor_new(&sq, PH_F64, 2, (int64_t[]){p->groups, columns}, err);
  if (st) {
    return st;
  }
  ph_job job = {
      .data = data, .idx = idx, .mode = probe->grad ? PH_MODE_GRAD : PH_MODE_EVAL, .probe = probe, .grad_sq = sq->data};
  st = probe->grad ? gradient(p, &job, n, res, err) : check_data(p, data, idx, n, err);
  st = st || probe->grad ? st : run_rounds(p, &job, n, res, err);
  for (int64_t c = 0; !st && probe->grad && c < columns; c++) {
    double sum = 0;
    for (int64_t g = 0; g < p->groups; g++) {
      sum += ph_tensor_get(sq, g * columns + c);
    }
    ph_tensor_set(probe->grad, c, sqrt(sum));
  }
  p->job.probe = NULL;
  ph_tensor_free(sq);
  return st;
}
