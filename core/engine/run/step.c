/* step.c - gradients and training steps: the region over samples, then the region over layers. */
#include <math.h>

#include "engine/run/plan_internal.h"

/* Groups that hold gradients after n samples were run. */
static int64_t groups_of(const ph_plan *p, int64_t n) {
  return ((n < p->batch ? n : p->batch) + p->group - 1) / p->group;
}

ph_status ph_plan_grad(ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *gx, ph_result *res,
                       ph_err *err) {
  ph_status st = gx ? ph_plan_check_rows(p, "the input's cotangent", gx, p->ir->input, err) : PH_OK;
  ph_job job = {.data = data, .idx = idx, .mode = PH_MODE_GRAD, .gx = gx};
  st = st ? st : ph_loop_gradient(p, &job, n, res, err);
  if (!st) {
    ph_layers_run(p, &(ph_update){.groups = groups_of(p, n), .have_grad = true, .store_grad = true, .shrink = 1.0});
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
  ph_status st = ph_loop_gradient(p, &job, n, res, err);
  if (st || !res->finite) {
    return st;
  }
  prepare_rates(p, o);
  ph_update u = {.optim = o, .groups = groups_of(p, n), .have_grad = true, .shrink = 1.0, .forward = true};
  if (o->clip > 0) {
    ph_layers_run(p, &(ph_update){.groups = u.groups, .have_grad = true, .store_grad = true, .shrink = 1.0});
    res->grad_norm = stored_norm(p);
    u.have_grad = false;
    u.from_store = true;
    u.shrink = res->grad_norm > o->clip ? o->clip / res->grad_norm : 1.0;
  }
  ph_layers_run(p, &u);
  p->steps++;
  return PH_OK;
}
