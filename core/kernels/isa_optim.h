/* isa_optim.h - optimizer updates and scans over contiguous numbers. */
#ifndef PH_KERNELS_ISA_OPTIM_H
#define PH_KERNELS_ISA_OPTIM_H

#include "kernels/isa_wide.h"

typedef struct adam_consts {
  real b1, a1, b2, a2, c2, eps, rate, decay; /* a = 1 - b, rate = lr c1, decay = - lr weight_decay */
} adam_consts;

PH_INL void adam_step(real *p, const real *g, real *m, real *v, const adam_consts *k, int64_t n) {
  const vec grad = ldn(g, n);
  const vec old = ldn(p, n);
  const vec m1 = vfma(bc(k->b1), ldn(m, n), k->a1 * grad);
  const vec v1 = vfma(bc(k->b2), ldn(v, n), (k->a2 * grad) * grad);
  stn(m, m1, n);
  stn(v, v1, n);
  stn(p, vfma(bc(k->decay), old, old) - (k->rate * m1) / (vsqrt(v1 * k->c2) + k->eps), n);
}

PH_FUN void k_adam(int64_t n, void *p, const void *g, void *m, void *v, const ph_adam *o) {
  const adam_consts k = {(real)o->beta1, (real)(1 - o->beta1), (real)o->beta2,        (real)(1 - o->beta2),
                         (real)o->c2,    (real)o->eps,         (real)(o->lr * o->c1), (real)(-o->lr * o->weight_decay)};
  real *P = p;
  real *M = m;
  real *V = v;
  const real *G = g;
  int64_t j = 0;
  for (; j + PH_LANES <= n; j += PH_LANES) {
    adam_step(P + j, G + j, M + j, V + j, &k, PH_LANES);
  }
  if (j < n) {
    adam_step(P + j, G + j, M + j, V + j, &k, n - j);
  }
}

PH_INL void sgd_step(real *p, const real *g, real *v, real lr, real momentum, real decay, int64_t n) {
  const vec old = ldn(p, n);
  const vec v1 = vfma(bc(momentum), ldn(v, n), vfma(bc(decay), old, ldn(g, n)));
  stn(v, v1, n);
  stn(p, vfma(bc(-lr), v1, old), n);
}

PH_FUN void k_sgd(int64_t n, void *p, const void *g, void *v, double lr, double momentum, double weight_decay) {
  real *P = p;
  real *V = v;
  const real *G = g;
  int64_t j = 0;
  for (; j + PH_LANES <= n; j += PH_LANES) {
    sgd_step(P + j, G + j, V + j, (real)lr, (real)momentum, (real)weight_decay, PH_LANES);
  }
  if (j < n) {
    sgd_step(P + j, G + j, V + j, (real)lr, (real)momentum, (real)weight_decay, n - j);
  }
}

/* 0 * x is 0 for finite x and NaN otherwise, so a sum of them tells whether a block is clean. */
PH_INL int all_finite(int64_t n, const real *x) {
  vec s[4] = {{0}, {0}, {0}, {0}};
  int64_t j = 0;
  for (; j + 4 * PH_LANES <= n; j += 4 * PH_LANES) {
    PH_EACH(i, 4) s[i] = vfma(bc(0), ld(x + j + i * PH_LANES), s[i]);
  }
  for (; j + PH_LANES <= n; j += PH_LANES) {
    s[0] = vfma(bc(0), ld(x + j), s[0]);
  }
  if (j < n) {
    s[1] = vfma(bc(0), ld_part(x + j, n - j), s[1]);
  }
  const vec t = (s[0] + s[1]) + (s[2] + s[3]);
  real sum = 0;
  for (int i = 0; i < PH_LANES; i++) {
    sum += t[i];
  }
  return sum == 0;
}

PH_FUN int64_t k_first_nonfinite(int64_t n, const void *x) {
  const real *p = x;
  for (int64_t j = 0; j < n; j += 4096) {
    const int64_t end = n - j < 4096 ? n : j + 4096;
    if (all_finite(end - j, p + j)) {
      continue;
    }
    for (int64_t i = j; i < end; i++) {
      if (!(p[i] - p[i] == 0)) {
        return i;
      }
    }
  }
  return -1;
}

PH_FUN double k_sumsq(int64_t n, const void *x) { return sum_squares(n, x, 1); }

PH_FUN double k_dot(int64_t n, const void *x, const void *y) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    sum +=
        dfma((double)((const real *)x)[i], (double)((const real *)y)[i], -0.0); /* a product that is not contracted */
  }
  return sum;
}

/* Largest magnitude, NaN if there is any. */
PH_INL double largest_magnitude(int64_t n, const real *x) {
  vec m = {0};
  vec bad = {0};
  vec v;
  int64_t j = 0;
  for (; j <= n - PH_LANES; j += PH_LANES) {
    v = ld(x + j);
    m = vmax(vabs(v), m);
    bad = vmax(bad, vsel(v == v, bad, bc(1)));
  }
  if (j < n) {
    v = ld_part(x + j, n - j);
    m = vmax(vabs(v), m);
    bad = vmax(bad, vsel(v == v, bad, bc(1)));
  }
  real top = 0;
  for (int i = 0; i < PH_LANES; i++) {
    if (bad[i] > 0) {
      return NAN;
    }
    top = m[i] > top ? m[i] : top;
  }
  return (double)top;
}

/* The squares as they are, unless their sum may have left the range of double (float32 rows never do): then the row is
 * scaled by a power of two first. */
PH_INL double row_norm(int64_t n, const real *x) {
  const double plain = sum_squares(n, x, 1);
  if (sizeof(real) == 4 || (plain > 0x1p-900 && plain < INFINITY)) {
    return __builtin_sqrt(plain);
  }
  const double top = largest_magnitude(n, x);
  if (!(top > 0 && top < INFINITY)) {
    return top;
  }
  int e;
  (void)frexp(top, &e);
  e = e < -1000 ? -1000 : e;
  return ldexp(__builtin_sqrt(sum_squares(n, x, ldexp(1, -e))), e);
}

PH_FUN void k_rownorm(int64_t rows, int64_t cols, const void *x, int64_t ldx, double *out) {
  for (int64_t r = 0; r < rows; r++) {
    out[r] = row_norm(cols, (const real *)x + r * ldx);
  }
}

#endif
