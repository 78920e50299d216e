/* spectrum.c - singular values of deep products, layer by layer. One task is one product. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/la.h"
#include "base/mem.h"
#include "laws/walk.h"

typedef struct job {
  int64_t layers, d;
  const double *M;
  int passes;
  double *logs, *change;
  ph_err *err; /* (count): one a product */
} job;

/* Room of one product: two stacks of triangles, Q and T. */
typedef struct room {
  double *from, *to, *Q, *T, *old;
} room;

static void transpose(int64_t d, const double *A, double *B) {
  for (int64_t i = 0; i < d; i++) {
    for (int64_t k = 0; k < d; k++) {
      B[k * d + i] = A[i * d + k];
    }
  }
}

/* One pass over the factors F_0 ... F_{L-1} (first applied first): F_i Q_{i-1} = Q_i R_i; logs = sum of ln diag R_i. The triangles are
 * left transposed and in reverse order in `out`: the factors of the next pass. */
static ph_status pass(const job *j, const double *F, double *out, room *r, double *logs, ph_err *err) {
  int64_t d = j->d;
  int64_t mm = d * d;
  memset(r->Q, 0, (size_t)mm * sizeof *r->Q);
  memset(logs, 0, (size_t)d * sizeof *logs);
  for (int64_t i = 0; i < d; i++) {
    r->Q[i * d + i] = 1;
  }
  double *R = r->old + d;
  for (int64_t l = 0; l < j->layers; l++) {
    ph_la_gemm(false, false, (int)d, (int)d, (int)d, F + l * mm, r->Q, r->T);
    ph_status st = ph_la_qr((int)d, (int)d, r->T, r->Q, R, err);
    if (st) {
      return st;
    }
    for (int64_t i = 0; i < d; i++) {
      logs[i] += log(R[i * d + i]);
    }
    transpose(d, R, out + (j->layers - 1 - l) * mm);
  }
  return PH_OK;
}

static int descending(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x < y) - (x > y);
}

static double moved(int64_t d, const double *a, const double *b) {
  double most = 0;
  for (int64_t i = 0; i < d; i++) {
    if (isfinite(a[i]) || isfinite(b[i])) {
      most = ph_laws_worse(most, fabs(a[i] - b[i]) / (1 + fabs(a[i])));
    }
  }
  return most;
}

static ph_status product(const job *j, int64_t which, room *r, ph_err *err) {
  int64_t d = j->d;
  size_t bytes = (size_t)d * sizeof(double);
  double *logs = j->logs + which * d;
  const double *F = j->M + which * j->layers * d * d;
  double change = INFINITY;
  for (int p = 0; p < j->passes && change > 1e-13; p++) {
    memcpy(r->old, logs, bytes);
    ph_status st = pass(j, F, p % 2 ? r->from : r->to, r, logs, err);
    if (st) {
      return st;
    }
    F = p % 2 ? r->from : r->to;
    qsort(logs, (size_t)d, sizeof *logs, descending);
    change = p ? moved(d, logs, r->old) : INFINITY;
  }
  j->change[which] = change;
  return PH_OK;
}

static void run_task(void *ctx, int task, int w) {
  (void)w;
  job *j = ctx;
  ph_err *err = &j->err[task];
  size_t mm = (size_t)(j->d * j->d);
  size_t stack = mm * (size_t)j->layers;
  if (ph_interrupt_get()) {
    ph_err_set(err, PH_E_INTERRUPTED, "interrupted");
    return;
  }
  double *block = ph_mem_new(2 * stack + 3 * mm + (size_t)j->d, sizeof(double));
  if (!block) {
    ph_err_set(err, PH_E_NOMEM, "spectrum: no memory for %lld layers of width %lld", (long long)j->layers,
               (long long)j->d);
    return;
  }
  room r = {.from = block,
            .to = block + stack,
            .Q = block + 2 * stack,
            .T = block + 2 * stack + mm,
            .old = block + 2 * stack + 2 * mm};
  ph_status st = product(j, task, &r, err);
  if (st) {
    err->code = st;
  }
  ph_mem_free(block);
}

ph_status ph_laws_spectrum(int64_t count, int64_t layers, int64_t d, const double *M, int passes, ph_pool *pool,
                           double *logs, double *change, ph_err *err) {
  if (count < 1 || layers < 1 || d < 1 || passes < 1) {
    return ph_err_set(err, PH_E_ARG, "spectrum: needs at least one product, layer, dimension and pass");
  }
  for (int64_t i = 0; i < count * layers * d * d; i++) {
    if (!isfinite(M[i])) {
      return ph_err_set(err, PH_E_NONFINITE, "spectrum: factor %lld of product %lld is not finite",
                        (long long)(i / (d * d) % layers + 1), (long long)(i / (d * d * layers) + 1));
    }
  }
  job j = {.layers = layers, .d = d, .M = M, .passes = passes, .logs = logs, .change = change};
  j.err = ph_mem_new((size_t)count, sizeof *j.err);
  if (!j.err) {
    return ph_err_set(err, PH_E_NOMEM, "spectrum: no memory");
  }
  ph_pool_run(pool, (int)count, run_task, &j);
  ph_status st = PH_OK;
  for (int64_t i = 0; i < count && !st; i++) {
    if (j.err[i].code) {
      st = ph_err_set(err, j.err[i].code, "%s", j.err[i].text);
    }
  }
  ph_mem_free(j.err);
  return st;
}
