/* loop.c - the region over samples: batches cut into fixed groups, groups into tiles; their results added in order. */
#include <math.h>

#include "base/clock.h"
#include "engine/run/plan_internal.h"

/* ---- one sample group ---- */

static void group_task(void *job, int group, int worker) {
  ph_job *j = job;
  ph_plan *p = j->p;
  if (ph_interrupt_get()) {
    j->stopped = 1;
    return;
  }
  int64_t from = group * p->group;
  int64_t to = from + p->group < j->n ? from + p->group : j->n;
  p->result[group] = (ph_group_result){.finite = true, .bad_segment = -1, .bad_step = -1};
  ph_tile t = {.p = p, .job = j, .w = &p->worker[worker], .group = group, .fresh = !j->accumulate};
  for (t.first = from; t.first < to; t.first += p->tile) {
    t.rows = to - t.first < p->tile ? to - t.first : p->tile;
    t.last = t.first + t.rows == to;
    ph_tile_run(&t);
    t.fresh = false;
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

/* The round of a job's n samples that starts at sample `at`. */
static ph_job round_of(ph_plan *p, const ph_job *job, int64_t n, int64_t at) {
  ph_job j = *job;
  j.p = p;
  j.idx = job->idx + at;
  j.n = n - at < p->batch ? n - at : p->batch;
  j.first = at;
  j.scale = 1.0 / (double)n;
  j.accumulate = at > 0;
  return j;
}

ph_status ph_loop_run(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  *res = (ph_result){.finite = true, .n = n, .bad_segment = -1, .bad_step = -1, .grad_norm = NAN};
  double start = ph_clock();
  for (int64_t at = 0; at < n; at += p->batch) {
    ph_job j = round_of(p, job, n, at);
    int groups = (int)((j.n + p->group - 1) / p->group);
    ph_pool_run(p->pool, groups, group_task, &j);
    if (j.stopped) {
      return ph_err_set(err, PH_E_INTERRUPTED, "interrupted");
    }
    add_results(p, groups, res);
  }
  p->seconds_stream += ph_clock() - start;
  res->loss = n ? res->loss / (double)n : NAN;
  res->finite &= isfinite(res->loss);
  return PH_OK;
}

/* A loss that is not finite: look for the first segment and iteration whose state is not, and for the cause. */
static ph_status diagnose(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  if (res->finite) {
    return PH_OK;
  }
  ph_job again = {.data = job->data, .idx = job->idx, .mode = PH_MODE_DIAGNOSE};
  ph_result found;
  ph_status st = ph_loop_run(p, &again, n, &found, err);
  if (!st) {
    res->bad_segment = found.bad_segment;
    res->bad_step = found.bad_step;
    ph_values_blame(p, res);
  }
  return st;
}

/* ---- evaluation, gradient ---- */

ph_status ph_plan_eval(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *out, ph_result *res,
                       ph_err *err) {
  ph_status st = ph_plan_check_data(p, data, idx, n, err);
  st = st || !out ? st : ph_plan_check_rows(p, "the output tensor", out, p->ir->output, err);
  if (st) {
    return st;
  }
  ph_job job = {.data = data, .idx = idx, .mode = PH_MODE_EVAL, .out = out};
  st = ph_loop_run(p, &job, n, res, err);
  return st || !ph_ir_has_loss(p->ir) ? st : diagnose(p, &job, n, res, err);
}

ph_status ph_loop_gradient(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) {
  ph_status st = ph_plan_check_data(p, job->data, job->idx, n, err);
  if (!st && !ph_ir_has_loss(p->ir)) {
    st = ph_err_set(err, PH_E_ARG, "a gradient needs a loss; the model has neither one nor a term");
  }
  st = st ? st : ph_loop_run(p, job, n, res, err);
  return st ? st : diagnose(p, job, n, res, err);
}
