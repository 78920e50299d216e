/* isa_act.h - elementwise activations and their derivatives on tiles; their rows are in activations.h. */
#ifndef PH_KERNELS_ISA_ACT_H
#define PH_KERNELS_ISA_ACT_H

#include "kernels/activations.h"
#include "kernels/isa_trig.h"

/* The largest finite number of its sign in place of an infinity, so that 0 times it is 0: a limit, not NaN. */
PH_INL vec finite_below(vec x) { return vsel(x < bc(-PH_MAX), bc(-PH_MAX), x); }
PH_INL vec finite_end(vec x) { return vsel(x > bc(PH_MAX), bc(PH_MAX), finite_below(x)); }

/* ---- a pair for each: y = f(x), and f' from what its row says ---- */

PH_INL vec value_tanh(vec x) { return vtanh(x); }
PH_INL vec slope_tanh(vec y) { return vfma(-y, y, bc(1)); }

PH_INL vec value_relu(vec x) { return vsel(x <= bc(0), bc(0), x); }
PH_INL vec slope_relu(vec y) { return vsel(y <= bc(0), bc(0), bc(1)); }

/* x Phi(x), exact */
PH_INL vec value_gelu(vec x) {
  vec bell;
  return finite_below(x) * vphi(x, &bell);
}
PH_INL vec slope_gelu(vec x) {
  vec bell;
  const vec phi = vphi(x, &bell);
  return vfma(finite_end(x) * bell, bc((real)0.39894228040143267794), phi);
}

PH_INL vec value_sigmoid(vec x) { return vsigmoid(x); }
PH_INL vec slope_sigmoid(vec y) { return y * ((real)1 - y); }

PH_INL vec value_softplus(vec x) { return vsoftplus(x); }
PH_INL vec slope_softplus(vec x) { return vsigmoid(x); }

PH_INL vec value_silu(vec x) { return finite_below(x) * vsigmoid(x); }
PH_INL vec slope_silu(vec x) {
  const vec s = vsigmoid(x);
  return s * vfma(finite_end(x), (real)1 - s, bc(1));
}

PH_INL vec value_hardtanh(vec x) { return vsel(x > bc(1), bc(1), vsel(x < bc(-1), bc(-1), x)); }
PH_INL vec slope_hardtanh(vec y) { return vsel(vabs(y) >= bc(1), bc(0), bc(1)); }

PH_INL vec value_softsign(vec x) {
  const vec v = finite_end(x);
  return v / (vabs(v) + (real)1);
}
PH_INL vec slope_softsign(vec x) {
  const vec r = (real)1 / (vabs(x) + (real)1);
  return r * r;
}

PH_INL vec value_exp(vec x) { return vexp(x); }
PH_INL vec slope_exp(vec y) { return y; }

PH_INL vec value_log(vec x) { return vlog(x); }
PH_INL vec slope_log(vec x) { return vsel(x < bc(0), bc((real)NAN), (real)1 / x); }

PH_INL vec value_sin(vec x) { return vsin(x); }
PH_INL vec slope_sin(vec x) { return vcos(x); }

PH_INL vec value_cos(vec x) { return vcos(x); }
PH_INL vec slope_cos(vec x) { return -vsin(x); }

PH_INL vec value_square(vec x) { return x * x; }
PH_INL vec slope_square(vec x) { return x + x; }

PH_INL vec value_abs(vec x) { return vabs(x); }
PH_INL vec slope_abs(vec x) { return vsel(x > bc(0), bc(1), vsel(x < bc(0), bc(-1), x)); }

/* ---- by number: f is a constant in every caller, so one case is left ---- */

PH_INL vec act_value(const ph_act f, vec x) {
  switch (f) {
#define ROW(NAME, name, ...) \
  case PH_ACT_##NAME: return value_##name(x);
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: return x;
  }
}

/* v: x or y */
PH_INL vec act_slope(const ph_act f, vec v) {
  switch (f) {
#define ROW(NAME, name, ...) \
  case PH_ACT_##NAME: return slope_##name(v);
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: return v;
  }
}

/* ---- on tiles ---- */

PH_INL void act_rows(const ph_act f, int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy) {
  for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES) {
      st(y + j, act_value(f, ld(x + j)));
    }
    if (j < cols) {
      st_part(y + j, act_value(f, ld_part(x + j, cols - j)), cols - j);
    }
  }
}

PH_FUN void k_act(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy) {
  join_rows(&rows, &cols, ldx != cols || ldy != cols);
  switch (f) {
#define ROW(NAME, ...) \
  case PH_ACT_##NAME: act_rows(PH_ACT_##NAME, rows, cols, x, ldx, y, ldy); break;
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: assert(!"activation");
  }
}

/* n elements of one row; v is the row of x or y that the derivative is made from. */
PH_INL void act_bwd_step(const ph_act f, const real *v, const real *gy, real *gx, int acc, int64_t n) {
  const vec g = ldn(gy, n);
  const vec s = act_slope(f, ldn(v, n));
  stn(gx, acc ? vfma(g, s, ldn(gx, n)) : g * s, n);
}

PH_INL void act_bwd_rows(const ph_act f, int64_t rows, int64_t cols, const real *v, int64_t ldv, const real *gy,
                         int64_t ldg, real *gx, int64_t ldgx, int acc) {
  for (int64_t r = 0; r < rows; r++, v += ldv, gy += ldg, gx += ldgx) {
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES) {
      act_bwd_step(f, v + j, gy + j, gx + j, acc, PH_LANES);
    }
    if (j < cols) {
      act_bwd_step(f, v + j, gy + j, gx + j, acc, cols - j);
    }
  }
}

PH_FUN void k_act_bwd(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy,
                      const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc) {
  const void *v = ph_act_from_output(f) ? y : x;
  const int64_t ldv = ph_act_from_output(f) ? ldy : ldx;
  join_rows(&rows, &cols, ldv != cols || ldg != cols || ldgx != cols);
  switch (f) {
#define ROW(NAME, ...) \
  case PH_ACT_##NAME: act_bwd_rows(PH_ACT_##NAME, rows, cols, v, ldv, gy, ldg, gx, ldgx, acc); break;
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: assert(!"activation");
  }
}

#endif
