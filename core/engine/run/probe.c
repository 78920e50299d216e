/* probe.c - what is read off a running stream: norms of states, ports and cotangents, the first state that is not finite. */
#include <math.h>

#include "engine/run/plan_internal.h"

static void record(const ph_plan *p, const ph_worker *w, ph_tensor *t, int64_t columns, int64_t column) {
  for (int64_t r = 0; r < w->rows; r++) {
    ((double *)t->data)[(p->job.first + w->first + r) * columns + column] = w->norm[r];
  }
}

/* Norm of each sample's whole state: over positions too. Rows are [position][sample]. */
static void sample_norms(ph_plan *p, ph_worker *w, ph_shape s, const char *x, int64_t ld) {
  p->k->rownorm(w->rows, s.cols, x, ld, w->norm);
  for (int64_t q = 1; q < s.pos; q++) {
    for (int64_t r = 0; r < w->rows; r++) {
      double one = 0;
      p->k->rownorm(1, s.cols, ph_plan_at(p, x, (q * w->rows + r) * ld), ld, &one);
      w->norm[r] = hypot(w->norm[r], one);
    }
  }
}

static void diagnose(ph_plan *p, ph_worker *w, int s, int64_t step, ph_shape shape, const char *next) {
  ph_group_result *res = &p->result[w->group];
  if (res->bad_segment >= 0 && (res->bad_segment < s || (res->bad_segment == s && res->bad_step <= step))) {
    return;
  }
  if (p->k->first_nonfinite(w->rows * shape.pos * shape.cols, next) >= 0) {
    res->bad_segment = s;
    res->bad_step = step;
  }
}

void ph_probe_forward(ph_plan *p, ph_worker *w, int s, int64_t step, const char *next, const char *port,
                      int64_t port_ld) {
  const ph_program *q = &p->segment[s].prog;
  ph_shape shape = step < 0 ? q->seg->state : q->graph.node[q->graph.result].shape;
  if (p->job.mode == PH_MODE_DIAGNOSE) {
    diagnose(p, w, s, step, shape, next);
    return;
  }
  const ph_probe *probe = p->job.probe;
  if (probe->segment != s) {
    return;
  }
  if (probe->state) {
    sample_norms(p, w, shape, next, shape.cols);
    record(p, w, probe->state, q->seg->repeat + 1, step + 1);
  }
  if (probe->port && port) {
    sample_norms(p, w, shape, port, port_ld);
    record(p, w, probe->port, q->seg->repeat, step);
  }
}

void ph_probe_backward(ph_plan *p, ph_worker *w, int s, int64_t at, const char *g, int64_t ld, int64_t cols) {
  const ph_probe *probe = p->job.probe;
  if (probe->segment != s || !probe->grad) {
    return;
  }
  const ph_program *q = &p->segment[s].prog;
  sample_norms(p, w,
               ph_shape_with_cols(at == q->seg->repeat ? q->graph.node[q->graph.result].shape : q->seg->state, cols), g,
               ld);
  double *sum = &p->job.grad_sq[w->group * (q->seg->repeat + 1) + at];
  for (int64_t r = 0; r < w->rows; r++) {
    *sum += w->norm[r] * w->norm[r];
  }
}
