/* isa_act.h - elementwise activations and their derivatives on tiles.
 *
 * tanh, sigmoid and relu take the derivative from y (x may be NULL), gelu, softplus and silu from x (y may be NULL).
 * gelu is the exact x Phi(x). NaN passes. silu and gelu of -infinity are NaN (0 times infinity), as in the definition.
 */
#ifndef PH_KERNELS_ISA_ACT_H
#define PH_KERNELS_ISA_ACT_H

#include "kernels/isa_math.h"

PH_INL vec act_value(const ph_act f, vec x) {
  vec bell;
  switch (f) {
  case PH_ACT_TANH: return vtanh(x);
  case PH_ACT_RELU: return vsel(x <= bc(0), bc(0), x);
  case PH_ACT_GELU: return x * vphi(x, &bell);
  case PH_ACT_SIGMOID: return vsigmoid(x);
  case PH_ACT_SOFTPLUS: return vsoftplus(x);
  case PH_ACT_SILU: return x * vsigmoid(x);
  default: return x;
  }
}

/* f' at x, y = f(x) */
PH_INL vec act_slope(const ph_act f, vec x, vec y) {
  vec bell, s;
  switch (f) {
  case PH_ACT_TANH: return vfma(-y, y, bc(1));
  case PH_ACT_RELU: return vsel(y <= bc(0), bc(0), bc(1));
  case PH_ACT_GELU: s = vphi(x, &bell); return vfma(x * bell, bc((real)0.39894228040143267794), s);
  case PH_ACT_SIGMOID: return y * ((real)1 - y);
  case PH_ACT_SOFTPLUS: return vsigmoid(x);
  case PH_ACT_SILU: s = vsigmoid(x); return s * vfma(x, (real)1 - s, bc(1));
  default: return x;
  }
}

PH_INL int act_from_output(const ph_act f) { return f == PH_ACT_TANH || f == PH_ACT_RELU || f == PH_ACT_SIGMOID; }

PH_INL void act_rows(const ph_act f, int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy) {
  for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES)
      st(y + j, act_value(f, ld(x + j)));
    if (j < cols)
      st_part(y + j, act_value(f, ld_part(x + j, cols - j)), cols - j);
  }
}

PH_FUN void k_act(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy) {
  join_rows(&rows, &cols, ldx != cols || ldy != cols);
  switch (f) {
  case PH_ACT_TANH: act_rows(PH_ACT_TANH, rows, cols, x, ldx, y, ldy); break;
  case PH_ACT_RELU: act_rows(PH_ACT_RELU, rows, cols, x, ldx, y, ldy); break;
  case PH_ACT_GELU: act_rows(PH_ACT_GELU, rows, cols, x, ldx, y, ldy); break;
  case PH_ACT_SIGMOID: act_rows(PH_ACT_SIGMOID, rows, cols, x, ldx, y, ldy); break;
  case PH_ACT_SOFTPLUS: act_rows(PH_ACT_SOFTPLUS, rows, cols, x, ldx, y, ldy); break;
  case PH_ACT_SILU: act_rows(PH_ACT_SILU, rows, cols, x, ldx, y, ldy); break;
  default: assert(!"activation");
  }
}

/* n elements of one row; v is the row of x or y that the derivative is made from. */
PH_INL void act_bwd_step(const ph_act f, const real *v, const real *gy, real *gx, int acc, int64_t n) {
  const vec a = ldn(v, n), g = ldn(gy, n), s = act_slope(f, a, a);
  stn(gx, acc ? vfma(g, s, ldn(gx, n)) : g * s, n);
}

PH_INL void act_bwd_rows(const ph_act f, int64_t rows, int64_t cols, const real *v, int64_t ldv, const real *gy,
                         int64_t ldg, real *gx, int64_t ldgx, int acc) {
  for (int64_t r = 0; r < rows; r++, v += ldv, gy += ldg, gx += ldgx) {
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES)
      act_bwd_step(f, v + j, gy + j, gx + j, acc, PH_LANES);
    if (j < cols)
      act_bwd_step(f, v + j, gy + j, gx + j, acc, cols - j);
  }
}

PH_FUN void k_act_bwd(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy,
                      const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc) {
  const void *v = act_from_output(f) ? y : x;
  const int64_t ldv = act_from_output(f) ? ldy : ldx;
  join_rows(&rows, &cols, ldv != cols || ldg != cols || ldgx != cols);
  switch (f) {
  case PH_ACT_TANH: act_bwd_rows(PH_ACT_TANH, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  case PH_ACT_RELU: act_bwd_rows(PH_ACT_RELU, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  case PH_ACT_GELU: act_bwd_rows(PH_ACT_GELU, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  case PH_ACT_SIGMOID: act_bwd_rows(PH_ACT_SIGMOID, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  case PH_ACT_SOFTPLUS: act_bwd_rows(PH_ACT_SOFTPLUS, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  case PH_ACT_SILU: act_bwd_rows(PH_ACT_SILU, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
  default: assert(!"activation");
  }
}

#endif
