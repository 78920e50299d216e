/* check.c - whether data are what a model takes. */
#include "engine/run/plan_internal.h"

ph_status ph_plan_check_rows(const ph_plan *p, const char *what, const ph_tensor *t, ph_shape s, ph_err *err) {
  if (t->dtype != p->ir->dtype || t->rank != 2 || t->dim[1] != s.pos * s.cols) {
    char have[96];
    return ph_err_set(err, t->dtype != p->ir->dtype ? PH_E_DTYPE : PH_E_SHAPE, "%s must be %s (n, %lld), got %s", what,
                      ph_dtype_name(p->ir->dtype), (long long)(s.pos * s.cols),
                      ph_tensor_describe(t, have, sizeof have));
  }
  return PH_OK;
}

static ph_status check_source(const ph_plan *p, const char *what, const ph_source *from, ph_shape s, ph_err *err) {
  if (from->dtype != p->ir->dtype || from->features != s.pos * s.cols) {
    return ph_err_set(err, from->dtype != p->ir->dtype ? PH_E_DTYPE : PH_E_SHAPE,
                      "%s must be %s (n, %lld), got %s (%lld, %lld)", what, ph_dtype_name(p->ir->dtype),
                      (long long)(s.pos * s.cols), ph_dtype_name(from->dtype), (long long)from->n,
                      (long long)from->features);
  }
  return PH_OK;
}

static ph_status check_labels(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_err *err) {
  for (int64_t i = 0; i < n; i++) {
    int32_t y = data->label[idx[i]];
    if (y < 0 || y >= p->ir->output.cols) {
      return ph_err_set(err, PH_E_ARG, "label %d of sample %d is outside 0..%lld", (int)y, (int)idx[i] + 1,
                        (long long)p->ir->output.cols - 1);
    }
  }
  return PH_OK;
}

static ph_status check_wanted(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_err *err) {
  ph_loss_need need = p->ir->loss->need;
  if (need == PH_LOSS_NOTHING) {
    return PH_OK;
  }
  if (need == PH_LOSS_LABELS ? !data->label : !data->target.fill) {
    return ph_err_set(err, PH_E_ARG, "the loss %s needs %s", p->ir->loss->name, ph_loss_need_name(need));
  }
  return need == PH_LOSS_LABELS ? check_labels(p, data, idx, n, err)
                                : check_source(p, "targets", &data->target, p->ir->output, err);
}

ph_status ph_plan_check_data(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n, ph_err *err) {
  ph_status st = check_source(p, "data", &data->x, p->ir->input, err);
  for (int64_t i = 0; !st && i < n; i++) {
    if (idx[i] < 0 || idx[i] >= data->x.n) {
      st = ph_err_set(err, PH_E_ARG, "sample number %d is outside 1..%lld", (int)idx[i] + 1, (long long)data->x.n);
    }
  }
  return st ? st : check_wanted(p, data, idx, n, err);
}
