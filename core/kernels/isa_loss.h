/* isa_loss.h - losses of rows and their cotangents: softmax cross-entropy with labels, means over differences. */
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

/* Cross-entropy with one label: e^(x - top) in g becomes the cotangent. */
PH_INL double hard_row(int64_t cols, const real *x, int64_t want, real top, real sum, real scale, real *g) {
  const double loss = log_double((double)sum) - ((double)x[want] - (double)top);
  if (g) {
    const real right = scale * ((g[want] - sum) / sum);
    const real f = scale / sum;
    for (int64_t j = 0; j < cols; j++) {
      g[j] *= f;
    }
    g[want] = right;
  }
  return loss;
}

/* The share a_j of class j. */
PH_INL double soft_share(int64_t cols, int64_t j, int64_t want, double smoothing, const double *weight) {
  const double q = (j == want ? 1 - smoothing : 0) + smoothing / (double)cols;
  return weight ? weight[j] * q : q;
}

PH_INL double soft_row(int64_t cols, const real *x, int64_t want, real top, real sum, double smoothing,
                       const double *weight, double scale, real *g) {
  double all = 0;
  double along = 0;
  for (int64_t j = 0; j < cols; j++) {
    const double a = soft_share(cols, j, want, smoothing, weight);
    all += a;
    along = dfma(a, (double)x[j] - (double)top, along);
  }
  for (int64_t j = 0; g && j < cols; j++) {
    const double a = soft_share(cols, j, want, smoothing, weight);
    g[j] = (real)(scale * dfma(all, (double)g[j] / (double)sum, -a));
  }
  return dfma(all, log_double((double)sum), -along);
}

PH_FUN void k_softmax_ce(int64_t rows, int64_t cols, const void *x, int64_t ldx, const int32_t *label, double smoothing,
                         const double *weight, double scale, double *loss, int32_t *hit, void *g, int64_t ldg) {
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
    loss[r] = smoothing == 0 && !weight ? hard_row(cols, xr, want, top, sum, (real)scale, gr)
                                        : soft_row(cols, xr, want, top, sum, smoothing, weight, scale, gr);
    hit[r] = sum == sum && is_first_largest(want, xr, top);
  }
}

/* *s += f(d); d becomes the slope there, of the square half of it. */
PH_INL void add_misfit(ph_misfit f, vec delta, vec *d, vec *s) {
  const vec a = vabs(*d);
  if (f == PH_MISFIT_SQUARE) {
    *s = vfma(*d, *d, *s);
  } else if (f == PH_MISFIT_HUBER) {
    const vec q = vsel(a < delta, a, delta);
    *s = vfma(q, vfma(q, bc((real)-0.5), a), *s);
    *d = vsel(*d > delta, delta, vsel(*d < -delta, -delta, *d));
  } else {
    *s += a;
    *d = vsel(*d > bc(0), bc(1), vsel(*d < bc(0), bc(-1), *d));
  }
}

PH_INL void row_misfit(ph_misfit f, vec delta, wide *s, const real *x, const real *t, real factor, real *g, int64_t n) {
  const wide a = wide_ld(x, n);
  const wide b = wide_ld(t, n);
  wide d;
  EACH_PART d.p[i_] = a.p[i_] - b.p[i_];
  EACH_PART add_misfit(f, delta, &d.p[i_], &s->p[i_]);
  if (!g) {
    return;
  }
  EACH_PART d.p[i_] *= factor;
  wide_st(g, d, n);
}

PH_FUN void k_misfit(ph_misfit f, double delta, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *t,
                     int64_t ldt, double scale, double *loss, void *g, int64_t ldg) {
  if (cols < 1) {
    return;
  }
  const real factor = (real)((f == PH_MISFIT_SQUARE ? 2 : 1) * scale / (double)cols);
  const vec beyond = bc((real)delta);
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *tr = (const real *)t + r * ldt;
    real *gr = g ? (real *)g + r * ldg : NULL;
    wide s = wide_bc(0);
    int64_t j = 0;
    for (; j + PH_WIDE <= cols; j += PH_WIDE) {
      row_misfit(f, beyond, &s, xr + j, tr + j, factor, gr ? gr + j : NULL, PH_WIDE);
    }
    if (j < cols) {
      row_misfit(f, beyond, &s, xr + j, tr + j, factor, gr ? gr + j : NULL, cols - j);
    }
    loss[r] = (double)wide_sum(s) / (double)cols;
  }
}

#endif
