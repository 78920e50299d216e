/* loss.c - the table of losses. */
#include "ir/loss.h"

#include <math.h>
#include <string.h>

static void cross_entropy(const ph_loss_call *c) {
  c->k->softmax_ce(c->rows, c->cols, c->y, c->cols, c->label, c->attr[0], c->list[1], c->scale, c->loss, c->hit, c->g,
                   c->cols);
}

static void misfit(const ph_loss_call *c, ph_misfit f) {
  c->k->misfit(f, c->attr[0], c->rows, c->cols, c->y, c->cols, c->target, c->cols, c->scale, c->loss, c->g, c->cols);
}

static void mse(const ph_loss_call *c) { misfit(c, PH_MISFIT_SQUARE); }
static void huber(const ph_loss_call *c) { misfit(c, PH_MISFIT_HUBER); }
static void mae(const ph_loss_call *c) { misfit(c, PH_MISFIT_ABS); }

static const ph_loss TABLE[] = {
    {.name = "none", .since = 1, .need = PH_LOSS_NOTHING, .equation = "0", .doc = "Nothing is compared."},
    {.name = "softmax_cross_entropy",
     .word = "cross_entropy",
     .since = 1,
     .need = PH_LOSS_LABELS,
     .least_cols = 2,
     .attr = {{.name = "smoothing",
               .min = 0,
               .above = NAN,
               .below = 1,
               .doc = "share of every label that is spread over all classes"},
              {.name = "weights",
               .list = true,
               .min = 0,
               .above = NAN,
               .below = NAN,
               .doc = "a factor for each class; the mean over the samples is not divided by their sum"}},
     .run = cross_entropy,
     .equation = "sum_j w_j q_j (ln sum_k e^{y_k} - y_j), q_j = (1 - smoothing) [j = label] + smoothing/classes",
     .doc = "Cross-entropy of the softmax of the outputs and a label."},
    {.name = "mse",
     .word = "mse",
     .since = 1,
     .need = PH_LOSS_TARGETS,
     .run = mse,
     .equation = "mean_j (y_j - t_j)^2",
     .doc = "Mean squared error."},
    {.name = "huber",
     .word = "huber",
     .since = 2,
     .need = PH_LOSS_TARGETS,
     .attr = {{.name = "delta",
               .initial = 1,
               .min = NAN,
               .above = 0,
               .below = NAN,
               .doc = "where the parabola ends and the straight line begins"}},
     .run = huber,
     .equation = "mean_j h(y_j - t_j), h(e) = e^2/2 for |e| <= delta, else delta (|e| - delta/2)",
     .doc = "Square for small errors, absolute value for large ones."},
    {.name = "mae",
     .word = "mae",
     .since = 2,
     .need = PH_LOSS_TARGETS,
     .run = mae,
     .equation = "mean_j |y_j - t_j|",
     .doc = "Mean absolute error; its derivative at 0 is 0."},
};

bool ph_loss_allows(const ph_loss_attr *a, double v) {
  return isfinite(v) && !(v < a->min) && !(v <= a->above) && !(v >= a->below);
}

const char *ph_loss_need_name(ph_loss_need need) {
  static const char *const name[PH_LOSS_NEEDS] = {"nothing", "labels", "targets"};
  return name[need];
}

int ph_loss_count(void) { return (int)(sizeof TABLE / sizeof TABLE[0]); }

const ph_loss *ph_loss_at(int i) { return i >= 0 && i < ph_loss_count() ? &TABLE[i] : NULL; }

const ph_loss *ph_loss_find(const char *name) {
  for (int i = 0; i < ph_loss_count(); i++) {
    if (strcmp(TABLE[i].name, name) == 0) {
      return &TABLE[i];
    }
  }
  return NULL;
}
