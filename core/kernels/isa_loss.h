/* isa_loss.h - losses of rows and their cotangents: softmax cross-entropy with labels, mean squared error. */
#ifndef PH_KERNELS_ISA_LOSS_H
#define PH_KERNELS_ISA_LOSS_H

#include "kernels/isa_math.h"
#include "kernels/isa_wide.h"

/* Largest element; NaN elements may be passed over (the sum of exponentials finds them). */
PH_INL real row_largest(int64_t cols, const real *x) {
  real m = x[0];
  for (int64_t j = 1; j < cols; j++) {
    m = x[j] > m ? x[j] : m;
  }
  return m;
}

PH_INL void row_add_exp(wide *s, const real *x, real top, real *e, int64_t n) {
  wide v = wide_ld(x, n);
  EACH_PART v.p[i_] = vexp(v.p[i_] - top);
  v = wide_keep(v, n);
  EACH_PART s->p[i_] += v.p[i_];
  if (e) {
    wide_st(e, v, n);
  }
}

/* Sum of e^(x - top); the terms go to e if it is not NULL. */
PH_INL real row_sum_exp(int64_t cols, const real *x, real top, real *e) {
  wide s = wide_bc(0);
  int64_t j = 0;
  for (; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_add_exp(&s, x + j, top, e ? e + j : NULL, PH_WIDE);
  }
  if (j < cols) {
    row_add_exp(&s, x + j, top, e ? e + j : NULL, cols - j);
  }
  return wide_sum(s);
}

PH_INL int32_t is_first_largest(int64_t label, const real *x, real top) {
  for (int64_t j = 0; j < label; j++) {
    if (x[j] == top) {
      return 0;
    }
  }
  return x[label] == top;
}

PH_FUN void k_softmax_ce(int64_t rows, int64_t cols, const void *x, int64_t ldx, const int32_t *label, double scale,
                         double *loss, int32_t *hit, void *g, int64_t ldg) {
  if (cols < 1) {
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    real *gr = g ? (real *)g + r * ldg : NULL;
    const int64_t want = label[r];
    assert(want >= 0 && want < cols);
    const real top = row_largest(cols, xr);
    const real sum = row_sum_exp(cols, xr, top, gr);
    loss[r] = log_double((double)sum) - ((double)xr[want] - (double)top);
    hit[r] = sum == sum && is_first_largest(want, xr, top);
    if (!gr) {
      continue;
    }
    const real right = (real)scale * ((gr[want] - sum) / sum);
    const real f = (real)scale / sum;
    for (int64_t j = 0; j < cols; j++) {
      gr[j] *= f;
    }
    gr[want] = right;
  }
}

PH_INL void row_mse(wide *s, const real *x, const real *t, real f, real *g, int64_t n) {
  const wide a = wide_ld(x, n);
  const wide b = wide_ld(t, n);
  wide d;
  EACH_PART d.p[i_] = a.p[i_] - b.p[i_];
  EACH_PART s->p[i_] = vfma(d.p[i_], d.p[i_], s->p[i_]);
  if (!g) {
    return;
  }
  EACH_PART d.p[i_] *= f;
  wide_st(g, d, n);
}

PH_FUN void k_mse(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *t, int64_t ldt, double scale,
                  double *loss, void *g, int64_t ldg) {
  if (cols < 1) {
    return;
  }
  const real f = (real)(2 * scale / (double)cols);
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *tr = (const real *)t + r * ldt;
    real *gr = g ? (real *)g + r * ldg : NULL;
    wide s = wide_bc(0);
    int64_t j = 0;
    for (; j + PH_WIDE <= cols; j += PH_WIDE) {
      row_mse(&s, xr + j, tr + j, f, gr ? gr + j : NULL, PH_WIDE);
    }
    if (j < cols) {
      row_mse(&s, xr + j, tr + j, f, gr ? gr + j : NULL, cols - j);
    }
    loss[r] = (double)wide_sum(s) / (double)cols;
  }
}

#endif
