/* stream.c - the loops over layers: conservation, explicit twin, standard stream, gradients. One task is one stream. */
#include <math.h>
#include <string.h>

#include "base/la.h"
#include "base/mem.h"
#include "laws/draw.h"
#include "laws/walk.h"

typedef struct job job;
typedef ph_status stream_fn(job *j, ph_laws_bench *b, int64_t s, ph_err *err);

/* Per worker, so that no two threads write the same place. */
typedef struct worker {
  ph_laws_bench bench;
  int64_t guarded;
  double worst;
  ph_err err;
} worker;

struct job {
  const ph_laws_random *c;
  stream_fn *run;
  double *out, *out2;
  int64_t abreast; /* streams of a task */
  int workers;
  worker *worker;
};

static void run_task(void *ctx, int task, int w) {
  job *j = ctx;
  worker *me = &j->worker[w];
  if (me->err.code) {
    return;
  }
  if (ph_interrupt_get()) {
    ph_err_set(&me->err, PH_E_INTERRUPTED, "interrupted");
    return;
  }
  ph_status st = j->run(j, &me->bench, task * j->abreast, &me->err);
  if (st) {
    me->err.code = st;
  }
}

static worker *worker_of(job *j, const ph_laws_bench *b) {
  for (int w = 0; w < j->workers; w++) {
    if (&j->worker[w].bench == b) {
      return &j->worker[w];
    }
  }
  return NULL;
}

/* Runs all streams; worst and guarded (may be NULL) are reduced over the workers. */
static ph_status run_all(job *j, ph_pool *pool, double *worst, int64_t *guarded, ph_err *err) {
  ph_status st = ph_laws_check(j->c, err);
  if (st) {
    return st;
  }
  j->workers = ph_pool_threads(pool);
  j->worker = ph_mem_new((size_t)j->workers, sizeof *j->worker);
  if (!j->worker) {
    return ph_err_set(err, PH_E_NOMEM, "random streams: no memory for %d workers", j->workers);
  }
  for (int w = 0; w < j->workers && !st; w++) {
    st = ph_laws_bench_init(&j->worker[w].bench, j->c, err);
  }
  if (!st) {
    j->abreast = j->abreast ? j->abreast : 1;
    ph_pool_run(pool, (int)((j->c->streams + j->abreast - 1) / j->abreast), run_task, j);
  }
  double most = 0;
  int64_t count = 0;
  for (int w = 0; w < j->workers; w++) {
    worker *me = &j->worker[w];
    if (me->err.code && !st) {
      st = ph_err_set(err, me->err.code, "%s", me->err.text);
    }
    most = ph_laws_worse(most, me->worst);
    count += me->guarded;
    ph_laws_bench_fini(&me->bench);
  }
  ph_mem_free(j->worker);
  if (!st && worst) {
    *worst = most;
  }
  if (!st && guarded) {
    *guarded = count;
  }
  return st;
}

/* Column t of a result from b->norms. */
static void put(const job *j, const ph_laws_bench *b, double *out, int64_t s, int64_t t) {
  int64_t n = j->c->inputs;
  for (int64_t i = 0; i < n; i++) {
    out[(s * n + i) * (j->c->depth + 1) + t] = b->norms[i];
  }
}

/* y = 2 X v - v: C v from N, Lam v from P. `transposed` uses X^T. */
static void reflect(ph_laws_bench *b, const ph_laws_random *c, const double *X, bool transposed, const double *v,
                    double *y) {
  int64_t d = c->width;
  int64_t n = c->inputs;
  b->k->gemm(d, n, d, X, transposed ? 1 : d, transposed ? d : 1, v, n, NULL, 0, NULL, y, n);
  b->k->axpby(d, n, 2, y, n, -1, v, n, y, n);
}

static ph_status conserve(job *j, ph_laws_bench *b, int64_t s, ph_err *err) {
  const ph_laws_random *c = j->c;
  int64_t width = c->depth + 1;
  double *bound = j->out2 + s * c->inputs * width;
  worker *me = worker_of(j, b);
  ph_laws_draw_start(b, c, "laws.x0", s, b->x);
  ph_laws_norms(b, c, b->x);
  put(j, b, j->out, s, 0);
  put(j, b, j->out2, s, 0);
  for (int64_t t = 0; t < c->depth; t++) {
    ph_status st = ph_laws_draw_layer(b, c, s, t, err);
    if (st) {
      return st;
    }
    me->guarded += b->guarded;
    ph_laws_draw_port(b, c, s, t);
    ph_laws_norms(b, c, b->inj);
    for (int64_t i = 0; i < c->inputs; i++) {
      bound[i * width + t + 1] = bound[i * width + t] + b->norms[i];
    }
    reflect(b, c, b->N, false, b->x, b->y);
    reflect(b, c, b->P, false, b->y, b->x);
    b->k->axpby(c->width, c->inputs, 1, b->x, c->inputs, 1, b->inj, c->inputs, b->x, c->inputs);
    ph_laws_norms(b, c, b->x);
    put(j, b, j->out, s, t + 1);
  }
  return PH_OK;
}

static ph_status conserve_abreast(job *j, ph_laws_bench *b, int64_t s, ph_err *err) {
  return ph_laws_lanes_walk(j->c, s, j->out, j->out2, &worker_of(j, b)->guarded, err);
}

ph_status ph_laws_conserve(const ph_laws_random *c, ph_pool *pool, double *norm, double *bound, int64_t *guarded,
                           ph_err *err) {
  bool fit = ph_laws_lanes_fit(c);
  job j = {
      .c = c, .run = fit ? conserve_abreast : conserve, .out = norm, .out2 = bound, .abreast = fit ? PH_ABREAST : 1};
  return run_all(&j, pool, NULL, guarded, err);
}

/* G = 2 (I - T)(I + T)^{-1} for T = 2 X - I, that is I - T = 2 (I - X) and I + T = 2 X: the inverse Cayley map of X = N or P.
 * G and tmp (d,d); returns the status of the pivoted inverse. */
static ph_status rebuild(ph_laws_bench *b, int64_t d, const double *X, double *G, double *tmp, ph_err *err) {
  b->k->axpby(d, d, 2, X, d, 0, NULL, 0, tmp, d); /* I + T */
  ph_status st = ph_la_inverse((int)d, tmp, G, err);
  if (st) {
    return st;
  }
  b->k->axpby(d, d, -1, tmp, d, 0, NULL, 0, tmp, d);
  for (int64_t i = 0; i < d; i++) {
    tmp[i * d + i] += 2; /* I - T */
  }
  double *product = tmp + d * d;
  b->k->gemm(d, d, d, tmp, d, 1, G, d, NULL, 0, NULL, product, d);
  b->k->axpby(d, d, 2, product, d, 0, NULL, 0, G, d);
  return PH_OK;
}

static double distance(int64_t n, const double *a, const double *b, double scale) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    most = ph_laws_worse(most, fabs(a[i] - scale * b[i]));
  }
  return most;
}

/* One explicit layer: x <- x - S x - hR x + inj, S and hR rebuilt into b->A and b->L. */
static ph_status explicit_layer(worker *me, const ph_laws_random *c, ph_err *err) {
  ph_laws_bench *b = &me->bench;
  int64_t d = c->width;
  int64_t n = c->inputs;
  double *S = b->B; /* the port has been used */
  b->k->skew(1, d, b->A, 0, S, 0);
  ph_status st = rebuild(b, d, b->N, b->A, b->scratch, err);
  if (!st) {
    st = rebuild(b, d, b->P, b->L, b->scratch, err);
  }
  if (st) {
    return st;
  }
  double off = ph_laws_worse(distance(d * d, b->A, S, 1), distance(d * d, b->L, b->R, c->step));
  me->worst = ph_laws_worse(me->worst, off);
  b->k->gemm(d, n, d, b->A, d, 1, b->x, n, NULL, 0, NULL, b->y, n);
  b->k->gemm(d, n, d, b->L, d, 1, b->x, n, b->y, n, NULL, b->y, n);
  b->k->axpby(d, n, 1, b->x, n, -1, b->y, n, b->x, n);
  b->k->axpby(d, n, 1, b->x, n, 1, b->inj, n, b->x, n);
  return PH_OK;
}

static ph_status twin(job *j, ph_laws_bench *b, int64_t s, ph_err *err) {
  const ph_laws_random *c = j->c;
  worker *me = worker_of(j, b);
  ph_laws_draw_start(b, c, "laws.x0", s, b->x);
  ph_laws_norms(b, c, b->x);
  put(j, b, j->out, s, 0);
  for (int64_t t = 0; t < c->depth; t++) {
    ph_status st = ph_laws_draw_layer(b, c, s, t, err);
    if (st) {
      return st;
    }
    ph_laws_draw_port(b, c, s, t);
    st = explicit_layer(me, c, err);
    if (st) {
      return st;
    }
    ph_laws_norms(b, c, b->x);
    put(j, b, j->out, s, t + 1);
  }
  return PH_OK;
}

ph_status ph_laws_twin(const ph_laws_random *c, ph_pool *pool, double *norm, double *roundtrip, ph_err *err) {
  job j = {.c = c, .run = twin, .out = norm};
  return run_all(&j, pool, roundtrip, NULL, err);
}

/* x <- x + W x, or x + W^T x. */
static void standard_layer(ph_laws_bench *b, const ph_laws_random *c, bool transposed, double *x) {
  int64_t d = c->width;
  int64_t n = c->inputs;
  b->k->gemm(d, n, d, b->B, transposed ? 1 : d, transposed ? d : 1, x, n, x, n, NULL, b->y, n);
  memcpy(x, b->y, (size_t)(d * n) * sizeof *x);
}

static ph_status control(job *j, ph_laws_bench *b, int64_t s, ph_err *err) {
  (void)err;
  const ph_laws_random *c = j->c;
  ph_laws_draw_start(b, c, "laws.x0", s, b->x);
  for (int64_t t = 0; t <= c->depth; t++) {
    ph_laws_norms(b, c, b->x);
    put(j, b, j->out, s, t);
    if (t < c->depth) {
      ph_laws_draw_control(b, c, s, t);
      standard_layer(b, c, false, b->x);
    }
  }
  return PH_OK;
}

ph_status ph_laws_control(const ph_laws_random *c, ph_pool *pool, double *norm, ph_err *err) {
  job j = {.c = c, .run = control, .out = norm};
  return run_all(&j, pool, NULL, NULL, err);
}

static ph_status gradient(job *j, ph_laws_bench *b, int64_t s, ph_err *err) {
  const ph_laws_random *c = j->c;
  double *g = b->x;
  double *plain = b->inj;
  ph_laws_draw_start(b, c, "laws.g", s, g);
  memcpy(plain, g, (size_t)(c->width * c->inputs) * sizeof *g);
  for (int64_t t = c->depth; t >= 0; t--) {
    ph_laws_norms(b, c, g);
    put(j, b, j->out, s, t);
    ph_laws_norms(b, c, plain);
    put(j, b, j->out2, s, t);
    if (t == 0) {
      break;
    }
    ph_status st = ph_laws_draw_layer(b, c, s, t - 1, err);
    if (st) {
      return st;
    }
    reflect(b, c, b->P, false, g, b->y);
    reflect(b, c, b->N, true, b->y, g);
    ph_laws_draw_control(b, c, s, t - 1);
    standard_layer(b, c, true, plain);
  }
  return PH_OK;
}

ph_status ph_laws_gradient(const ph_laws_random *c, ph_pool *pool, double *ph, double *standard, ph_err *err) {
  job j = {.c = c, .run = gradient, .out = ph, .out2 = standard};
  return run_all(&j, pool, NULL, NULL, err);
}
