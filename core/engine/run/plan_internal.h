/* plan_internal.h - a plan's memory and the steps of running it. Private to core/engine/run. */
#ifndef PH_ENGINE_PLAN_INTERNAL_H
#define PH_ENGINE_PLAN_INTERNAL_H

#include "base/pool.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

/* A segment with its memory. Elements are of the plan's dtype; `char *` so that offsets are explicit (ph_plan_at). */
typedef struct ph_segment {
  ph_program prog;
  ph_pprog pprog;
  int64_t layers; /* sets of parameters: repeat when owned, 1 when tied */
  bool tied;      /* one set, used at every step */
  int64_t window; /* iterations whose tape is kept at once; repeat when all are */
  int64_t windows;
  char *keep, *pack;
  char *grad;       /* (groups, layers, prog.grad) */
  int first_param;  /* index of its first parameter in the plan */
  int block_layers; /* layers of one task of the layer phase */
} ph_segment;

typedef struct ph_param {
  char name[48];
  int segment, leaf;
  int64_t rows, cols, layers;
  char *value, *moment1, *moment2, *grad; /* (layers, rows, cols) each */
  ph_rates rates;
  ph_adam adam; /* constants of the step being taken, with these rates */
} ph_param;

/* One worker's memory. Tapes and sequences exist once per segment because backward needs them all. */
typedef struct ph_worker {
  char **tape, **kept, **scratch, **cot[2], **seq; /* per segment; kept: states at window starts; seq: what it gives */
  char **g;         /* (segments + 1): cotangent of what enters segment s; g[segments]: of the output */
  char *x, *target; /* the tile's input and, for mse, its target */
  int32_t *label;
  double *loss, *norm;
  int32_t *hit;
  char *temp, *sum; /* layer phase: parameter values, reduced gradients */
  char *op;         /* scratch of the op being run, of either phase */
  int64_t rows;     /* samples of the tile being run */
  int64_t first;    /* number of its first sample among those of the job */
  int group;        /* whose gradient and results it belongs to */
  bool replay;      /* a window is being run again */
} ph_worker;

typedef struct ph_group_result {
  double loss;
  int64_t hits;
  bool finite;
  int64_t bad_segment, bad_step;
} ph_group_result;

typedef struct ph_block { /* a task of the layer phase */
  int segment;
  int64_t first, count;
} ph_block;

typedef enum ph_mode { PH_MODE_EVAL, PH_MODE_GRAD, PH_MODE_DIAGNOSE } ph_mode;

/* What a region over sample groups works on. */
typedef struct ph_job {
  const ph_data *data;
  const int32_t *idx;
  int64_t n, first; /* samples of this round, number of its first sample among all */
  double scale;     /* 1 / all samples */
  ph_mode mode;
  bool accumulate; /* a later round of the same gradient */
  ph_tensor *out, *gx;
  const ph_probe *probe;
  double *grad_sq; /* (groups, repeat + 1) of the probed segment, or NULL */
} ph_job;

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
  ph_job job;
  ph_update update;
  volatile int stopped;
  double seconds_stream, seconds_layers;
};

static inline char *ph_plan_at(const ph_plan *p, const char *base, int64_t elements) {
  return (char *)base + elements * (int64_t)p->size; /* callers own the memory they write */
}

/* One tile of samples through everything (stream.c). group: whose gradient it adds to; fresh: the first tile of it. */
void ph_stream_forward(ph_plan *p, ph_worker *w, bool keep);
void ph_stream_backward(ph_plan *p, ph_worker *w, int group, bool fresh, bool entry);
/* Where segment s's output lies after ph_stream_forward. */
char *ph_stream_output(const ph_worker *w, int s);
/* Hooks of probes: called by the loops of stream.c (probe.c). */
void ph_probe_forward(ph_plan *p, ph_worker *w, int s, int64_t step, const char *next, const char *port,
                      int64_t port_ld);
void ph_probe_backward(ph_plan *p, ph_worker *w, int s, int64_t at, const char *g, int64_t ld, int64_t cols);

/* One task of the layer phase (layers.c). */
void ph_layers_task(void *plan, int block, int worker);
/* Runs p->update over all units. */
void ph_layers_run(ph_plan *p);

/* Memory (memory.c). */
ph_status ph_plan_allocate(ph_plan *p, ph_err *err) PH_MUST_CHECK;
void ph_plan_release(ph_plan *p);

#endif
