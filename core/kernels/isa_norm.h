/* isa_norm.h - LayerNorm over the features of a row, and its adjoint (docs/laws.md, 7). */
#ifndef PH_KERNELS_ISA_NORM_H
#define PH_KERNELS_ISA_NORM_H

#include "kernels/isa_wide.h"

/* One group of a row, divided by `over`. n: elements that exist (PH_WIDE as a constant, or fewer). */
PH_INL void row_add(wide *s, const real *x, real over, int64_t n) {
  const wide v = wide_ld(x, n);
  EACH_PART s->p[i_] += v.p[i_] / over;
}

PH_INL void row_add_squares(wide *s, const real *x, real over, real mean, int64_t n) {
  wide v = wide_ld(x, n);
  EACH_PART v.p[i_] = v.p[i_] / over - mean;
  v = wide_keep(v, n);
  EACH_PART s->p[i_] = vfma(v.p[i_], v.p[i_], s->p[i_]);
}

PH_INL void row_normalize(const real *x, real mean, real rs, const real *gamma, const real *beta, real *y, int64_t n) {
  wide v = wide_ld(x, n);
  const wide g = wide_ld(gamma, n);
  const wide b = wide_ld(beta, n);
  EACH_PART v.p[i_] = vfma(g.p[i_], (v.p[i_] - mean) * rs, b.p[i_]);
  wide_st(y, v, n);
}

PH_INL real row_mean(int64_t cols, const real *x, real over) {
  wide s = wide_bc(0);
  int64_t j = 0;
  for (; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_add(&s, x + j, over, PH_WIDE);
  }
  if (j < cols) {
    row_add(&s, x + j, over, cols - j);
  }
  return wide_sum(s) / (real)cols;
}

PH_INL real row_variance(int64_t cols, const real *x, real over, real mean) {
  wide s = wide_bc(0);
  int64_t j = 0;
  for (; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_add_squares(&s, x + j, over, mean, PH_WIDE);
  }
  if (j < cols) {
    row_add_squares(&s, x + j, over, mean, cols - j);
  }
  return wide_sum(s) / (real)cols;
}

/* The mean and 1/sqrt(var + eps) of a row whose squares leave the range of its numbers: those of the row over its largest
 * magnitude, brought back. A row that is not finite keeps what it has. */
PH_FUN void row_moments_scaled(int64_t cols, real eps, const real *x, real *mean, real *rs) {
  real largest = 0;
  for (int64_t j = 0; j < cols; j++) {
    const real size = x[j] < 0 ? -x[j] : x[j];
    largest = largest >= size ? largest : size;
  }
  if (!(largest <= PH_MAX)) {
    return;
  }
  const real m = row_mean(cols, x, largest);
  const real variance = row_variance(cols, x, largest, m);
  *mean = m * largest;
  *rs = variance > 0 ? (real)1 / (real)__builtin_sqrt(variance) / largest : (real)1 / (real)__builtin_sqrt(eps);
}

PH_FUN void k_layernorm(int64_t rows, int64_t cols, double eps, const void *x, int64_t ldx, const void *gamma,
                        const void *beta, void *y, int64_t ldy, void *stat) {
  const real *g = gamma;
  const real *b = beta;
  real *keep = stat;
  if (cols < 1) {
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    real *yr = (real *)y + r * ldy;
    real mean = row_mean(cols, xr, 1);
    const real variance = row_variance(cols, xr, 1, mean);
    real rs = (real)1 / (real)__builtin_sqrt(variance + (real)eps);
    if (!(variance <= PH_MAX)) {
      row_moments_scaled(cols, (real)eps, xr, &mean, &rs);
    }
    int64_t j = 0;
    for (; j + PH_WIDE <= cols; j += PH_WIDE) {
      row_normalize(xr + j, mean, rs, g + j, b + j, yr + j, PH_WIDE);
    }
    if (j < cols) {
      row_normalize(xr + j, mean, rs, g + j, b + j, yr + j, cols - j);
    }
    keep[2 * r] = mean;
    keep[2 * r + 1] = rs;
  }
}

/* The means of q and q xh over a row, q = gamma gy; on the way ggamma += gy xh, gbeta += gy. */
PH_INL void row_bwd_sums(wide s[2], const real *x, real mean, real rs, const real *gamma, const real *gy, real *ggamma,
                         real *gbeta, int64_t n) {
  const wide v = wide_ld(x, n);
  const wide g = wide_ld(gamma, n);
  const wide dy = wide_ld(gy, n);
  wide xh;
  wide gg;
  wide gb;
  EACH_PART {
    const vec q = g.p[i_] * dy.p[i_];
    xh.p[i_] = (v.p[i_] - mean) * rs;
    s[0].p[i_] = vfma(g.p[i_], dy.p[i_], s[0].p[i_]);
    s[1].p[i_] = vfma(q, xh.p[i_], s[1].p[i_]);
  }
  if (ggamma) {
    gg = wide_ld(ggamma, n);
    EACH_PART gg.p[i_] = vfma(dy.p[i_], xh.p[i_], gg.p[i_]);
    wide_st(ggamma, gg, n);
  }
  if (gbeta) {
    gb = wide_ld(gbeta, n);
    EACH_PART gb.p[i_] += dy.p[i_];
    wide_st(gbeta, gb, n);
  }
}

PH_INL void row_bwd_apply(const real *x, real mean, real rs, const real *gamma, const real *gy, real mq, real mqx,
                          real *gx, int acc, int64_t n) {
  const wide v = wide_ld(x, n);
  const wide g = wide_ld(gamma, n);
  const wide dy = wide_ld(gy, n);
  wide o = acc ? wide_ld(gx, n) : wide_bc(0);
  EACH_PART {
    const vec xh = (v.p[i_] - mean) * rs;
    const vec t = vfma(xh, bc(-mqx), vfma(g.p[i_], dy.p[i_], bc(-mq)));
    o.p[i_] = acc ? vfma(bc(rs), t, o.p[i_]) : rs * t;
  }
  wide_st(gx, o, n);
}

PH_INL void row_bwd(int64_t cols, const real *x, real mean, real rs, const real *gamma, const real *gy, real *gx,
                    int acc, real *ggamma, real *gbeta) {
  wide s[2] = {wide_bc(0), wide_bc(0)};
  int64_t j = 0;
  for (; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_bwd_sums(s, x + j, mean, rs, gamma + j, gy + j, ggamma ? ggamma + j : NULL, gbeta ? gbeta + j : NULL, PH_WIDE);
  }
  if (j < cols) {
    row_bwd_sums(s, x + j, mean, rs, gamma + j, gy + j, ggamma ? ggamma + j : NULL, gbeta ? gbeta + j : NULL, cols - j);
  }
  const real mq = wide_sum(s[0]) / (real)cols;
  const real mqx = wide_sum(s[1]) / (real)cols;
  if (!gx) {
    return;
  }
  for (j = 0; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_bwd_apply(x + j, mean, rs, gamma + j, gy + j, mq, mqx, gx + j, acc, PH_WIDE);
  }
  if (j < cols) {
    row_bwd_apply(x + j, mean, rs, gamma + j, gy + j, mq, mqx, gx + j, acc, cols - j);
  }
}

PH_FUN void k_layernorm_bwd(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *gamma, const void *stat,
                            const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc_x, void *ggamma, void *gbeta,
                            int acc_p) {
  const real *st2 = stat;
  if (cols < 1) {
    return;
  }
  for (int64_t j = 0; j < cols && !acc_p; j++) {
    if (ggamma) {
      ((real *)ggamma)[j] = 0;
    }
    if (gbeta) {
      ((real *)gbeta)[j] = 0;
    }
  }
  for (int64_t r = 0; r < rows; r++) {
    row_bwd(cols, (const real *)x + r * ldx, st2[2 * r], st2[2 * r + 1], gamma, (const real *)gy + r * ldg,
            gx ? (real *)gx + r * ldgx : NULL, acc_x, ggamma, gbeta);
  }
}

#endif
