/* plan_internal.h - a plan's memory and the steps of running it. Private to core/engine/run. */
#ifndef PH_ENGINE_PLAN_INTERNAL_H
#define PH_ENGINE_PLAN_INTERNAL_H

#include "base/pool.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

struct ph_segment;

typedef struct ph_param {
  char name[2 * PH_IR_NAME];
  const ph_ir_param *declared;
  const struct ph_segment *first, *last; /* of the segments of one name that share it; else both the only one */
  bool moves;                            /* the loss depends on it in some segment */
  int64_t rows, cols, layers;
  char *value, *moment1, *moment2, *grad; /* (layers, rows, cols) each */
  ph_rates rates;
  ph_adam adam; /* constants of the step being taken, with these rates */
} ph_param;

/* A segment with its memory. Elements are of the plan's dtype; `char *` so that offsets are explicit (ph_plan_at). */
typedef struct ph_segment {
  ph_program prog;
  ph_pprog pprog;
  ph_param **param; /* the plan's parameter behind each leaf of the programs, as many as the IR segment declares */
  int64_t layers;   /* sets of parameters: repeat when owned, 1 when tied */
  bool tied;        /* one set, used at every step */
  int64_t window;   /* iterations whose tape is kept at once; repeat when all are */
  int64_t windows;
  bool ahead; /* what the stream phase reads outgrows a worker's cache and is asked for ahead (ahead.c) */
  char *keep, *pack;
  char *grad;              /* (groups, layers, prog.grad) */
  int block_layers;        /* layers of one task of the layer phase */
  struct ph_segment *next; /* of the same name, which shares parameters; NULL: none */
  bool follows;            /* another segment's next */
} ph_segment;

/* What a worker needs to take a tile through one segment. */
typedef struct ph_lane {
  char *tape;    /* records, one an iteration of a window, and one more for the state that the last one gives */
  char *kept;    /* (windows, tile * state): the states that windows start from; nothing when there is one window */
  char *scratch; /* values that only one iteration needs */
  char *cot[2];  /* cotangents of even and of odd iterations */
} ph_lane;

/* Between two segments: what the first gives and the second takes, (positions, samples of the tile, features). */
typedef struct ph_border {
  char *value, *cot;
} ph_border;

/* One worker's memory. Tapes and borders exist once per segment because backward needs them all. */
typedef struct ph_worker {
  ph_lane *lane;     /* of each segment */
  ph_border *border; /* one more: before segment s lies border s; the last is the output */
  char *target;      /* the tile's targets, where the loss needs them */
  int32_t *label;
  char *share; /* what one sample counts in the loss, for every sample of the tile; for terms */
  double *loss, *norm;
  int32_t *hit;
  char *temp, *sum; /* layer phase: parameter values, reduced gradients */
  char *op;         /* scratch of the op being run, of either phase */
} ph_worker;

typedef struct ph_group_result {
  double loss;
  int64_t hits;
  bool finite;
  int64_t bad_segment, bad_step;
} ph_group_result;

typedef struct ph_block { /* a task of the layer phase: layers of a segment, and of those that share its parameters */
  int segment;
  int64_t first, count;
} ph_block;

typedef enum ph_mode { PH_MODE_EVAL, PH_MODE_GRAD, PH_MODE_DIAGNOSE } ph_mode;

/* What a region over sample groups works on: one round of at most a batch. */
typedef struct ph_job {
  ph_plan *p;
  const ph_data *data;
  const int32_t *idx;
  int64_t n, first; /* samples of this round, number of its first sample among all */
  double scale;     /* 1 / all samples */
  ph_mode mode;
  bool accumulate; /* a later round of the same gradient */
  ph_tensor *out, *gx;
  const ph_probe *probe;
  double *grad_sq;      /* (groups, repeat + 1) of the probed segment, or NULL */
  volatile int stopped; /* some task met an interrupt */
} ph_job;

/* What a worker does now: some samples of a group of the job's. */
typedef struct ph_tile {
  ph_plan *p; /* the job's */
  const ph_job *job;
  ph_worker *w;
  int group;     /* whose gradient and results it belongs to */
  int64_t rows;  /* samples */
  int64_t first; /* number of its first sample among those of the round */
  bool fresh;    /* the gradient is written; otherwise it is added to what earlier tiles left */
  bool last;     /* no tile of the group follows: the gradient is whole and can be looked at */
} ph_tile;

/* What a region over blocks of layers does. */
typedef struct ph_update {
  const ph_optim *optim; /* NULL: no parameter changes */
  int64_t groups;        /* groups that hold gradients */
  bool have_grad;        /* run reduce and adjoint */
  bool store_grad;       /* leave gradients in ph_param.grad */
  bool from_store;       /* take gradients from there */
  double shrink;         /* factor on the gradient (clipping) */
  bool forward;          /* parameter forward and pack */
} ph_update;

struct ph_plan {
  ph_ir *ir;
  const ph_kern *k;
  size_t size; /* of an element */
  int nsegments;
  ph_segment *segment;
  int nparams;
  ph_param *param;
  int64_t batch, group, groups, tile;
  ph_pool *pool;
  int workers;
  ph_worker *worker;
  ph_group_result *result;
  int nblocks;
  ph_block *block;
  int64_t steps;
  double seconds_stream, seconds_layers;
};

static inline char *ph_plan_at(const ph_plan *p, const char *base, int64_t elements) {
  return (char *)base + elements * (int64_t)p->size; /* callers own the memory they write */
}

/* plan.c: the plan of a model, which it owns from here on; freed when it cannot be made. */
ph_status ph_plan_of(ph_plan **out, ph_ir *ir, const ph_plan_options *o, ph_err *err) PH_MUST_CHECK;

/* stream.c: one tile through all segments, forward (`keep`: for a backward pass) and back. */
void ph_stream_forward(const ph_tile *t, bool keep);
void ph_stream_backward(const ph_tile *t);

/* tile.c: a tile from its samples to its loss and gradient; adds to the group's result. */
void ph_tile_run(const ph_tile *t);

/* numbers.c: fills the tile's share. */
void ph_numbers_share(const ph_tile *t);

/* values.c: after a diagnosis, the op whose value is not finite; where no state is bad also its place. */
void ph_values_blame(const ph_plan *p, ph_result *res);

/* probe.c: hooks, called by the loops of stream.c. */
void ph_probe_forward(const ph_tile *t, int s, int64_t step, const char *next, const char *port, int64_t port_ld);
void ph_probe_backward(const ph_tile *t, int s, int64_t at, const char *g, int64_t ld);

/* loop.c: n samples through the stream phase, in rounds of at most a batch. job: data, idx, mode and where results go. */
ph_status ph_loop_run(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) PH_MUST_CHECK;
/* The same with a gradient in mind: data are checked; a loss that is not finite is looked into. */
ph_status ph_loop_gradient(ph_plan *p, const ph_job *job, int64_t n, ph_result *res, ph_err *err) PH_MUST_CHECK;

/* check.c: PH_E_ARG, PH_E_DTYPE or PH_E_SHAPE unless rows idx of the data (or a tensor like x) are what the model takes. */
ph_status ph_plan_check_rows(const ph_plan *p, const char *what, const ph_tensor *t, ph_shape s,
                             ph_err *err) PH_MUST_CHECK;
ph_status ph_plan_check_data(const ph_plan *p, const ph_data *data, const int32_t *idx, int64_t n,
                             ph_err *err) PH_MUST_CHECK;

/* layers.c: the layer phase over all blocks. */
void ph_layers_run(ph_plan *p, const ph_update *u);

/* Memory (memory.c). */
ph_status ph_plan_allocate(ph_plan *p, ph_err *err) PH_MUST_CHECK;
void ph_plan_release(ph_plan *p);

#endif
