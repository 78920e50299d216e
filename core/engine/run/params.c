/* params.c - parameters, moments and gradients in and out; initial values. */
#include "base/mem.h"
#include "base/rng.h"
#include "engine/run/plan_internal.h"

int ph_plan_param_count(const ph_plan *p) { return p->nparams; }
const char *ph_plan_param_name(const ph_plan *p, int i) { return p->param[i].name; }
int64_t ph_plan_steps(const ph_plan *p) { return p->steps; }
void ph_plan_set_steps(ph_plan *p, int64_t steps) { p->steps = steps; }
void ph_plan_set_rates(ph_plan *p, int i, const ph_rates *rates) { p->param[i].rates = *rates; }

static int64_t count(const ph_param *q) { return q->layers * q->rows * q->cols; }

void ph_plan_param_shape(const ph_plan *p, int i, int64_t dim[3]) {
  dim[0] = p->param[i].layers;
  dim[1] = p->param[i].rows;
  dim[2] = p->param[i].cols;
}

int64_t ph_plan_param_total(const ph_plan *p) {
  int64_t total = 0;
  for (int i = 0; i < p->nparams; i++) {
    total += count(&p->param[i]);
  }
  return total;
}

/* A borrowed view of a parameter's memory as a flat tensor. */
static ph_tensor view(const ph_plan *p, const ph_param *q, char *data) {
  return (ph_tensor){.dtype = p->ir->dtype, .rank = 3, .dim = {q->layers, q->rows, q->cols, 1}, .data = data};
}

static void init_one(const ph_plan *p, ph_param *q, uint64_t seed) {
  const ph_ir_param *r = q->declared;
  ph_tensor t = view(p, q, q->value);
  ph_rng rng = ph_rng_of(seed, q->name);
  if (r->init == PH_INIT_NORMAL) {
    ph_rng_fill_normal(rng, 0, r->scale, &t);
    return;
  }
  if (r->init == PH_INIT_UNIFORM) {
    ph_rng_fill_uniform(rng, 0, r->scale, &t);
    return;
  }
  double v = r->init == PH_INIT_ZEROS ? 0 : r->init == PH_INIT_ONES ? 1 : r->scale;
  for (int64_t i = 0; i < count(q); i++) {
    ph_tensor_set(&t, i, v);
  }
}

void ph_plan_init(ph_plan *p, uint64_t seed) {
  for (int i = 0; i < p->nparams; i++) {
    ph_param *q = &p->param[i];
    init_one(p, q, seed);
    memset(q->moment1, 0, (size_t)count(q) * p->size);
    memset(q->moment2, 0, (size_t)count(q) * p->size);
    memset(q->grad, 0, (size_t)count(q) * p->size);
  }
  p->steps = 0;
  ph_plan_refresh(p);
}

void ph_plan_refresh(ph_plan *p) { ph_layers_run(p, &(ph_update){.forward = true, .shrink = 1.0}); }

static char *array_of(const ph_param *q, ph_moment which) {
  char *const data[] = {q->value, q->moment1, q->moment2, q->grad};
  return data[which];
}

ph_status ph_plan_get(const ph_plan *p, int i, ph_moment which, ph_tensor **out, ph_err *err) {
  const ph_param *q = &p->param[i];
  ph_tensor t = view(p, q, array_of(q, which));
  return ph_tensor_copy(out, &t, err);
}

ph_status ph_plan_set(ph_plan *p, int i, ph_moment which, const ph_tensor *t, ph_err *err) {
  ph_param *q = &p->param[i];
  char have[96];
  if (t->dtype != p->ir->dtype) {
    return ph_err_set(err, PH_E_DTYPE, "%s is %s, got %s", q->name, ph_dtype_name(p->ir->dtype),
                      ph_dtype_name(t->dtype));
  }
  if (ph_tensor_count(t) != count(q) || t->dim[t->rank > 0 ? t->rank - 1 : 0] != q->cols) {
    return ph_err_set(err, PH_E_SHAPE, "%s has shape (%lld, %lld, %lld), got %s", q->name, (long long)q->layers,
                      (long long)q->rows, (long long)q->cols, ph_tensor_describe(t, have, sizeof have));
  }
  int64_t bad = ph_tensor_first_nonfinite(t);
  if (bad >= 0) {
    return ph_err_set(err, PH_E_NONFINITE, "%s: element %lld is not finite", q->name, (long long)bad + 1);
  }
  memcpy(array_of(q, which), t->data, (size_t)count(q) * p->size);
  return PH_OK;
}
