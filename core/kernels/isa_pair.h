/* isa_pair.h - tiles with tiles, with a row, with a column: quotients, choices, weighted rows, inner products; softmax of rows. */
#ifndef PH_KERNELS_ISA_PAIR_H
#define PH_KERNELS_ISA_PAIR_H

#include "kernels/isa_loss.h"

/* STEP(n) on a row of cols elements: n = PH_LANES from j on, then what is left. */
#define PH_ALONG(cols, STEP)                       \
  do {                                             \
    const int64_t along = (cols);                  \
    int64_t j = 0;                                 \
    for (; j + PH_LANES <= along; j += PH_LANES) { \
      STEP(PH_LANES);                              \
    }                                              \
    if (j < along) {                               \
      STEP(along - j);                             \
    }                                              \
  } while (0)

/* v, or v added to what z holds. */
PH_INL void put(real *z, vec v, int acc, int64_t n) { stn(z, acc ? ldn(z, n) + v : v, n); }

PH_FUN void k_div(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, const void *w, int64_t ldw,
                  const void *y, int64_t ldy, void *z, int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *wr = w ? (const real *)w + r * ldw : NULL;
    const real *yr = (const real *)y + r * ldy;
    real *zr = (real *)z + r * ldz;
#define STEP(n) put(zr + j, (real)a * (wr ? ldn(xr + j, n) * ldn(wr + j, n) : ldn(xr + j, n)) / ldn(yr + j, n), acc, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

/* The lanes of a condition that is NaN are NaN. */
PH_INL vec choose(vec c, vec x, vec y) { return vsel(c == c, vsel(c > bc(0), x, y), c); }

PH_FUN void k_where(int64_t rows, int64_t cols, const void *c, int64_t ldc, const void *x, int64_t ldx, const void *y,
                    int64_t ldy, void *z, int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const real *cr = (const real *)c + r * ldc;
    const real *xr = x ? (const real *)x + r * ldx : NULL;
    const real *yr = y ? (const real *)y + r * ldy : NULL;
    real *zr = (real *)z + r * ldz;
#define STEP(n) put(zr + j, choose(ldn(cr + j, n), xr ? ldn(xr + j, n) : bc(0), yr ? ldn(yr + j, n) : bc(0)), acc, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

PH_FUN void k_mul_row(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *z, int64_t ldz,
                      int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *vr = v;
    real *zr = (real *)z + r * ldz;
#define STEP(n) mul_step(xr + j, vr + j, zr + j, acc, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

PH_FUN void k_mul_col(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *s, int64_t lds, void *z,
                      int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const vec f = bc(((const real *)s)[r * lds]);
    real *zr = (real *)z + r * ldz;
#define STEP(n) stn(zr + j, acc ? vfma(f, ldn(xr + j, n), ldn(zr + j, n)) : f * ldn(xr + j, n), n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

PH_FUN void k_coldot(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                     int acc) {
  real *o = out;
  if (!acc) {
    k_zero(cols, o);
  }
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *yr = (const real *)y + r * ldy;
#define STEP(n) mul_step(xr + j, yr + j, o + j, 1, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

/* ---- sums along rows ---- */

PH_INL void row_add_products(wide *s, const real *x, const real *y, int64_t n) {
  const wide a = wide_ld(x, n);
  const wide b = wide_ld(y, n);
  EACH_PART { s->p[i_] = vfma(a.p[i_], b.p[i_], s->p[i_]); }
}

PH_INL real row_dot(int64_t cols, const real *x, const real *y) {
  wide s = wide_bc(0);
  int64_t j = 0;
  for (; j + PH_WIDE <= cols; j += PH_WIDE) {
    row_add_products(&s, x + j, y + j, PH_WIDE);
  }
  if (j < cols) {
    row_add_products(&s, x + j, y + j, cols - j);
  }
  return wide_sum(s);
}

PH_FUN void k_rowdot(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                     int64_t ldo) {
  for (int64_t r = 0; r < rows; r++) {
    ((real *)out)[r * ldo] = row_dot(cols, (const real *)x + r * ldx, (const real *)y + r * ldy);
  }
}

PH_FUN void k_softmax(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy) {
  for (int64_t r = 0; r < rows && cols > 0; r++) {
    const real *xr = (const real *)x + r * ldx;
    real *yr = (real *)y + r * ldy;
    const vec sum = bc(row_sum_exp(cols, xr, row_largest(cols, xr), yr));
#define STEP(n) stn(yr + j, ldn(yr + j, n) / sum, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

PH_FUN void k_softmax_bwd(int64_t rows, int64_t cols, const void *y, int64_t ldy, const void *gy, int64_t ldg, void *gx,
                          int64_t ldgx, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const real *yr = (const real *)y + r * ldy;
    const real *gr = (const real *)gy + r * ldg;
    real *gxr = (real *)gx + r * ldgx;
    const vec mean = bc(row_dot(cols, yr, gr));
#define STEP(n) put(gxr + j, vmul(ldn(yr + j, n), ldn(gr + j, n) - mean), acc, n)
    PH_ALONG(cols, STEP);
#undef STEP
  }
}

#endif
