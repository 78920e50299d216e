/* plan.h - a compiled model: parameters, optimizer state, packed weights, tapes, and the instructions that run them.
 *
 * A plan is made from canonical IR text (docs/language.md, "The IR"). Making it allocates; running it does not. One plan
 * belongs to one thread of control; it runs its own pool of workers. Results have the same bits for any number of
 * threads (docs/architecture.md, "Same bits").
 *
 * Samples come from sources (source.h): x of positions*features numbers of the plan's dtype, y int32 labels or a source of
 * targets. A batch is a list of their numbers.
 */
#ifndef PH_ENGINE_PLAN_H
#define PH_ENGINE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/tensor.h"
#include "engine/run/source.h"
#include "ir/ir.h"
#include "ir/op.h"

typedef struct ph_plan ph_plan;

typedef struct ph_plan_options {
  int64_t batch;      /* samples of a full batch; fixes the sample groups. 0 = 128 */
  int threads;        /* workers; 0 = 1 */
  int64_t tape_bytes; /* a worker's tape; longer streams keep every k-th state and recompute. 0 = 256 MiB */
  bool probe;         /* keep port terms apart so that their norms can be read (ph_plan_probe) */
} ph_plan_options;

typedef struct ph_data {
  ph_source x;          /* of the plan's dtype */
  const int32_t *label; /* (n) or NULL */
  ph_source target;     /* of the plan's dtype; fill NULL: none */
} ph_data;

typedef enum ph_optim_kind { PH_OPTIM_ADAM, PH_OPTIM_SGD } ph_optim_kind;

typedef struct ph_optim {
  ph_optim_kind kind;
  double lr, beta1, beta2, eps, weight_decay, momentum;
  double clip; /* > 0: scale the gradient so that its global norm is at most this; 0: off (the default) */
} ph_optim;

/* How the optimizer treats one parameter: lr times `lr`, its own weight decay, or not at all. */
typedef struct ph_rates {
  double lr;           /* factor on the learning rate, >= 0; 1 as made */
  double weight_decay; /* instead of the optimizer's; NaN as made: the optimizer's */
  bool frozen;         /* keeps its value; its gradient counts neither in the step nor in the norm that clip looks at */
} ph_rates;

typedef struct ph_result {
  double loss;                   /* mean over the samples given */
  int64_t hits;                  /* samples whose label is the first largest logit (classification) */
  int64_t n;                     /* samples */
  bool finite;                   /* loss and gradient are finite; a step with finite = false changes no parameter */
  int64_t bad_segment, bad_step; /* first segment and iteration whose state is not finite, -1 if none */
  const ph_op *bad_op;           /* what made a parameter value there that is not finite; NULL when all are */
  double grad_norm;              /* global gradient norm when clip > 0, else NaN */
} ph_result;

/* text: n bytes of canonical IR. Errors: PH_E_PARSE (line in the text), PH_E_SHAPE, PH_E_LIMIT, PH_E_NOMEM. */
ph_status ph_plan_new(ph_plan **out, const char *text, size_t n, const ph_plan_options *o, ph_err *err) PH_MUST_CHECK;
void ph_plan_free(ph_plan *plan);

/* ---- parameters ---- (names "s1.A": segment, declared name; stacked over layers when owned: (repeat, rows, cols)) */
int ph_plan_param_count(const ph_plan *plan);
const char *ph_plan_param_name(const ph_plan *plan, int i);
/* dim: (layers, rows, cols); one layer when the segment is tied. */
void ph_plan_param_shape(const ph_plan *plan, int i, int64_t dim[3]);
int64_t ph_plan_param_total(const ph_plan *plan);
/* Draws every parameter by its init rule from (seed, name, index); clears the optimizer state; packs (ph_plan_refresh). */
void ph_plan_init(ph_plan *plan, uint64_t seed);

typedef enum ph_moment { PH_MOMENT_VALUE, PH_MOMENT_FIRST, PH_MOMENT_SECOND, PH_MOMENT_GRAD } ph_moment;
/* A copy of parameter i, its moments or its last gradient (plan dtype). */
ph_status ph_plan_get(const ph_plan *plan, int i, ph_moment which, ph_tensor **out, ph_err *err) PH_MUST_CHECK;
/* Errors: PH_E_SHAPE, PH_E_DTYPE, PH_E_NONFINITE. Call ph_plan_refresh after the last one. */
ph_status ph_plan_set(ph_plan *plan, int i, ph_moment which, const ph_tensor *t, ph_err *err) PH_MUST_CHECK;
/* Rates of parameter i from the next step on; part of the protocol, not of a checkpoint. */
void ph_plan_set_rates(ph_plan *plan, int i, const ph_rates *rates);
/* Runs the parameter phase and packs the weights. */
void ph_plan_refresh(ph_plan *plan);
/* Optimizer steps taken (Adam's t); part of a checkpoint. */
int64_t ph_plan_steps(const ph_plan *plan);
void ph_plan_set_steps(ph_plan *plan, int64_t steps);

/* ---- running ---- idx: n row numbers of `data`. PH_E_INTERRUPTED leaves the parameters as they were. */
/* Forward, backward, optimizer: one training step. Never allocates. */
ph_status ph_plan_step(ph_plan *plan, const ph_data *data, const int32_t *idx, int64_t n, const ph_optim *o,
                       ph_result *res, ph_err *err) PH_MUST_CHECK;
/* Forward and backward only; gradients are read with PH_MOMENT_GRAD. gx (n, positions*features) or NULL: cotangent of the input. */
ph_status ph_plan_grad(ph_plan *plan, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *gx, ph_result *res,
                       ph_err *err) PH_MUST_CHECK;
/* Forward only. out (n, positions*features of the output) or NULL. */
ph_status ph_plan_eval(ph_plan *plan, const ph_data *data, const int32_t *idx, int64_t n, ph_tensor *out,
                       ph_result *res, ph_err *err) PH_MUST_CHECK;

/* ---- probes of one segment ---- */
typedef struct ph_probe {
  int segment;
  ph_tensor *state; /* OUT f64 (n, repeat+1)  ||z_t|| of each sample, scaled norms; or NULL */
  ph_tensor *port;  /* OUT f64 (n, repeat)    ||ports|| of each sample (plan made with probe = true); or NULL */
  ph_tensor *grad;  /* OUT f64 (repeat+1)     ||dLoss/dz_t|| over all samples given (mean loss); or NULL */
  ph_tensor
      *observe; /* OUT f64 (n, repeat, observations) what the segment observes, in the order of its text; or NULL */
} ph_probe;
ph_status ph_plan_probe(ph_plan *plan, const ph_data *data, const int32_t *idx, int64_t n, const ph_probe *probe,
                        ph_result *res, ph_err *err) PH_MUST_CHECK;

/* ---- what it is ---- */
/* The model it runs: element type, what a sample is and becomes, segments and what they declare. Borrowed while the plan lives. */
const ph_ir *ph_plan_model(const ph_plan *plan);

typedef struct ph_cost {
  double flops_param;                                        /* parameter phase, forward and backward, one step */
  double flops_stream;                                       /* stream phase, forward and backward, one sample */
  double flops_forward;                                      /* stream phase forward, one sample */
  int64_t bytes_param, bytes_packed, bytes_grad, bytes_tape; /* tape: one worker */
  int64_t groups, tile;                                      /* sample groups of a full batch, samples of a tile */
  int64_t window;                                            /* iterations between kept states (0 = all are kept) */
} ph_cost;
void ph_plan_cost(const ph_plan *plan, ph_cost *out);
/* The program as text for a person (`phrun inspect --plan`): owned by the caller (ph_mem_free). */
ph_status ph_plan_describe(const ph_plan *plan, char **text, ph_err *err) PH_MUST_CHECK;
/* Value of a named node of the parameter program ("s1.C") for all layers, f64 copy (repeat, rows, cols). PH_E_NOTFOUND lists the names. */
ph_status ph_plan_param_value(ph_plan *plan, const char *name, ph_tensor **out, ph_err *err) PH_MUST_CHECK;

/* Seconds of wall time spent in the stream and the layer phase since the plan was made or reset. */
void ph_plan_times(ph_plan *plan, double *stream, double *layers, bool reset);

#endif
