/* loss.h - the table of losses: every loss is one row. Text of the IR, bindings and documentation read the same rows.
 *
 * A loss compares what a model gives with what is wanted, row by row: rows are samples times positions.
 */
#ifndef PH_IR_LOSS_H
#define PH_IR_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/kern.h"

enum { PH_LOSS_ATTRS = 2 };

/* What a loss compares the output with: nothing, one label a sample, or a target of the output's shape. */
typedef enum ph_loss_need { PH_LOSS_NOTHING, PH_LOSS_LABELS, PH_LOSS_TARGETS, PH_LOSS_NEEDS } ph_loss_need;

/* "nothing", "labels", "targets" */
const char *ph_loss_need_name(ph_loss_need need);

/* An attribute: a number, or a list with one number for each feature of the output. One that is not given has its initial
 * value; a list that is not given is NULL. Numbers are finite and in a range. */
typedef struct ph_loss_attr {
  const char *name; /* NULL: none */
  bool list;
  double initial;
  double min, above, below; /* the range; NaN where there is no such end */
  const char *doc;
} ph_loss_attr;

bool ph_loss_allows(const ph_loss_attr *a, double v);

typedef struct ph_loss_call {
  const ph_kern *k;
  int64_t rows, cols;
  const void *y;        /* IN (rows, cols): what the model gives */
  const int32_t *label; /* IN (rows): labels in [0, cols), for PH_LOSS_LABELS */
  const void *target;   /* IN (rows, cols), for PH_LOSS_TARGETS */
  double attr[PH_LOSS_ATTRS];
  const double *list[PH_LOSS_ATTRS]; /* (cols) or NULL */
  double scale;                      /* factor on the cotangent */
  double *loss;                      /* OUT (rows) */
  int32_t *hit;                      /* OUT (rows), 1 where the label is the first largest output, for PH_LOSS_LABELS */
  void *g;                           /* OUT (rows, cols) scale * dloss/dy, or NULL */
} ph_loss_call;

typedef struct ph_loss {
  const char *name;
  const char *word; /* what a spec calls it; NULL: nothing */
  int since;        /* version of the IR that can name it */
  ph_loss_need need;
  int64_t least_cols;                 /* features that the output must have at least */
  ph_loss_attr attr[PH_LOSS_ATTRS];   /* in canonical order; name NULL after the last */
  void (*run)(const ph_loss_call *c); /* NULL where nothing is compared */
  const char *equation;               /* of one row */
  const char *doc;
} ph_loss;

int ph_loss_count(void);
const ph_loss *ph_loss_at(int i);
const ph_loss *ph_loss_find(const char *name); /* NULL if there is none */

#endif
