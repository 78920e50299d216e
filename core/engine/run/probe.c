/* probe.c - what is read off a running stream: norms of states, ports and cotangents, the first state that is not finite. */
#include <math.h>

#include "engine/run/plan_internal.h"

static void record(const ph_tile *t, ph_tensor *out, int64_t columns, int64_t column) {
  for (int64_t r = 0; r < t->rows; r++) {
    ((double *)out->data)[(t->job->first + t->first + r) * columns + column] = t->w->norm[r];
  }
}

/* Norm of each sample's whole state: over positions too. Rows are [position][sample]. */
static void sample_norms(const ph_tile *t, ph_shape s, const char *x, int64_t ld) {
  const ph_plan *p = t->p;
  p->k->rownorm(t->rows, s.cols, x, ld, t->w->norm);
  for (int64_t q = 1; q < s.pos; q++) {
    for (int64_t r = 0; r < t->rows; r++) {
      double one = 0;
      p->k->rownorm(1, s.cols, ph_plan_at(p, x, (q * t->rows + r) * ld), ld, &one);
      t->w->norm[r] = hypot(t->w->norm[r], one);
    }
  }
}

static void diagnose(const ph_tile *t, int s, int64_t step, ph_shape shape, const char *next) {
  ph_group_result *res = &t->p->result[t->group];
  if (res->bad_segment >= 0 && (res->bad_segment < s || (res->bad_segment == s && res->bad_step <= step))) {
    return;
  }
  if (t->p->k->first_nonfinite(t->rows * shape.pos * shape.cols, next) >= 0) {
    res->bad_segment = s;
    res->bad_step = step;
  }
}

static ph_shape result_shape(const ph_program *q) { return q->graph.node[q->graph.result].shape; }

void ph_probe_forward(const ph_tile *t, int s, int64_t step, const char *next, const char *port, int64_t port_ld) {
  const ph_program *q = &t->p->segment[s].prog;
  ph_shape shape = step < 0 ? q->seg->state : result_shape(q);
  if (t->job->mode == PH_MODE_DIAGNOSE) {
    diagnose(t, s, step, shape, next);
    return;
  }
  const ph_probe *probe = t->job->probe;
  if (!probe || probe->segment != s) {
    return;
  }
  if (probe->state) {
    sample_norms(t, shape, next, shape.cols);
    record(t, probe->state, q->seg->repeat + 1, step + 1);
  }
  if (probe->port && port) {
    sample_norms(t, shape, port, port_ld);
    record(t, probe->port, q->seg->repeat, step);
  }
}

void ph_probe_backward(const ph_tile *t, int s, int64_t at, const char *g, int64_t ld) {
  const ph_probe *probe = t->job->probe;
  if (!probe || probe->segment != s || !probe->grad) {
    return;
  }
  const ph_program *q = &t->p->segment[s].prog;
  sample_norms(t, at == q->seg->repeat ? result_shape(q) : q->seg->state, g, ld);
  double *sum = &t->job->grad_sq[t->group * (q->seg->repeat + 1) + at];
  for (int64_t r = 0; r < t->rows; r++) {
    *sum += t->w->norm[r] * t->w->norm[r];
  }
}

/* ---- a probed pass ---- */

static ph_status check_ports(const ph_program *q, int segment, ph_err *err) {
  unsigned parts = q->graph.node[q->graph.result].parts;
  if (q->seg->once) {
    return ph_err_set(err, PH_E_ARG, "segment %d is a stage; only streams have ports", segment + 1);
  }
  if (!(parts & PH_PART_CHANNEL)) {
    return ph_err_set(err, PH_E_ARG, "segment %d has no state channel, from which its ports could be told apart",
                      segment + 1);
  }
  if ((parts & PH_PART_PORT) && q->port < 0) {
    return ph_err_set(err, PH_E_ARG, "the plan was made without probes, so ports cannot be told apart");
  }
  return PH_OK;
}

static ph_status check_probe(const ph_plan *p, const ph_probe *probe, ph_err *err) {
  if (probe->segment < 0 || probe->segment >= p->nsegments) {
    return ph_err_set(err, PH_E_ARG, "segment %d is outside 1..%d", probe->segment + 1, p->nsegments);
  }
  if (probe->observe && p->ir->segment[probe->segment].nobserves == 0) {
    return ph_err_set(err, PH_E_ARG, "segment %d observes nothing", probe->segment + 1);
  }
  return probe->port ? check_ports(&p->segment[probe->segment].prog, probe->segment, err) : PH_OK;
}

/* to: the square root of each column's sum over the groups, added in order. */
static void root_of_sums(const ph_tensor *sq, int64_t groups, int64_t columns, ph_tensor *to) {
  for (int64_t c = 0; c < columns; c++) {
    double sum = 0;
    for (int64_t g = 0; g < groups; g++) {
      sum += ph_tensor_get(sq, g * columns + c);
    }
    ph_tensor_set(to, c, sqrt(sum));
  }
}

ph_status ph_plan_probe(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, const ph_probe *probe,
                        ph_result *res, ph_err *err) {
  ph_tensor *sq = NULL;
  ph_status st = check_probe(p, probe, err);
  int64_t columns = st ? 0 : p->segment[probe->segment].prog.seg->repeat + 1;
  st = st ? st : ph_tensor_new(&sq, PH_F64, 2, (int64_t[]){p->groups, columns}, err);
  if (st) {
    return st;
  }
  if (probe->port) {
    memset(probe->port->data, 0, (size_t)ph_tensor_bytes(probe->port)); /* where a stream has no ports, they are zero */
  }
  ph_job job = {.data = data, .idx = idx, .probe = probe, .grad_sq = sq->data};
  if (probe->grad) {
    job.mode = PH_MODE_GRAD;
    st = ph_loop_gradient(p, &job, n, res, err);
  } else {
    job.mode = PH_MODE_EVAL;
    st = ph_plan_check_data(p, data, idx, n, err);
    st = st ? st : ph_loop_run(p, &job, n, res, err);
  }
  if (!st && probe->grad) {
    root_of_sums(sq, p->groups, columns, probe->grad);
  }
  ph_tensor_free(sq);
  return st;
}
