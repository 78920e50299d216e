/* loss.c - the table of losses. */
#include "ir/loss.h"

#include <string.h>

static void cross_entropy(const ph_loss_call *c) {
  c->k->softmax_ce(c->rows, c->cols, c->y, c->cols, c->label, c->scale, c->loss, c->hit, c->g, c->cols);
}

static void mse(const ph_loss_call *c) {
  c->k->mse(c->rows, c->cols, c->y, c->cols, c->target, c->cols, c->scale, c->loss, c->g, c->cols);
}

static const ph_loss TABLE[] = {
    {.name = "none", .need = PH_LOSS_NOTHING, .equation = "0", .doc = "No loss: a model that is evaluated only."},
    {.name = "softmax_cross_entropy",
     .need = PH_LOSS_LABELS,
     .least_cols = 2,
     .run = cross_entropy,
     .equation = "ln sum_j e^{y_j} - y_label",
     .doc = "Cross-entropy of the softmax of the outputs and a label."},
    {.name = "mse",
     .need = PH_LOSS_TARGETS,
     .run = mse,
     .equation = "mean_j (y_j - t_j)^2",
     .doc = "Mean squared error."},
};

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
