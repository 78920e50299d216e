/* isa_math.h - exp, tanh, sigmoid, log1p, the normal distribution: branch-free, own, the same bits on every table with FMA.
 *
 * exp      n = round(y/ln 2), r = y - n ln 2 in two pieces, e^y = (1 + expm1(r)) 2^n; the power in two factors so that
 *          results fade into denormals and overflow to infinity rightly.              about 1 ulp
 * tanh     e/(e + 2), e = expm1(2|x|) (never 1 - small), true division: |tanh| <= 1 always.    <= 2.5 ulp
 * sigmoid  t/(1 + t) or 1/(1 + t), t = e^-|x|                                          <= 3 ulp
 * log1p    2 atanh(t/(2 + t)), for t in [0, 1] only                                   <= 3 ulp
 * log      x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), s = f/(2 + f): f - (f^2/2 - s (f^2/2 + s^2 R(s^2))), R of least largest
 *          error; 0 gives -infinity, x < 0 NaN                                           <= 1 ulp
 * normal   Phi(-a) = e^(-a^2/2) Q(s)/(a + 4), s = (a - 4)/(a + 4), a >= 0: relative accuracy in both tails (a^2 is kept in two
 *          pieces), so gelu = x Phi(x) needs no erf. Q: interpolation at Chebyshev points, relative error 1.4e-8
 *          (float32, a <= 15) and 4e-17 (float64, a <= 39).                          <= 6 ulp
 * NaN passes through all of them.
 */
#ifndef PH_KERNELS_ISA_MATH_H
#define PH_KERNELS_ISA_MATH_H

#include "kernels/isa_vec.h"

#if PH_DOUBLE
#define PH_MANT 52
#define PH_BIAS 1023
#define PH_SHIFT 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer in the low bits */
#define PH_LN2_HI 6.93147180369123816490e-01
#define PH_LN2_LO 1.90821492927058770002e-10
#define PH_EXP_LO (-746.0)
#define PH_EXP_HI 710.0
#define PH_TANH_MAX 22.0
#define PH_PHI_MAX 39.0
/* expm1(r) = r + r^2 (1/2 + r/6 + ...), |r| <= ln 2 / 2 */
static const real exp_coef[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
static const real phi_coef[] = {
    -9.653425420228504669e-10, 7.269545479026689456e-11, 1.39240239935017101e-8,  1.457859334703645972e-8,
    -7.63808205349045035e-8,   -1.542632053677107395e-7, 2.636824857640762506e-7, 1.019804851813517266e-6,
    -6.251321040478680193e-7,  -5.918892731763236447e-6, 7.150055959216098661e-7, 3.514418115776097273e-5,
    -1.907866531661357434e-6,  -2.310948183193762113e-4, 1.333442540190491162e-4, 1.630818441890359596e-3,
    -3.479692362242533344e-3,  -7.540188965593059021e-3, 6.039657489069946413e-2, -1.865218579596941633e-1,
    3.871374007422188786e-1,   -6.078966419718917589e-1, 7.552851304157514799e-1};
static const real log_coef[] = {0.14796624593616894, 0.15313986759408618, 0.18183566669984916, 0.22222198531113474,
                                0.28571428742766275, 0.39999999999413127, 0.66666666666667351};
#define PH_SQRT_HALF 0x3fe6a09e667f3bcd /* the bits of sqrt(1/2) */
#define PH_TINY 0x1p-1022
#define PH_ATANH_TERMS 16
#else
#define PH_MANT 23
#define PH_BIAS 127
#define PH_SHIFT 12582912.0f
#define PH_LN2_HI 0.693145751953125f
#define PH_LN2_LO 1.428606765330187e-06f
#define PH_EXP_LO (-104.0f)
#define PH_EXP_HI 89.0f
#define PH_TANH_MAX 9.02f
#define PH_PHI_MAX 15.0f
static const real exp_coef[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
static const real phi_coef[] = {-1.255583856e-4f, 1.889965194e-4f,  1.566881688e-3f, -3.520972824e-3f, -7.525402418e-3f,
                                6.040618551e-2f,  -1.865233068e-1f, 3.871366831e-1f, -6.078965941e-1f, 7.552851386e-1f};
static const real log_coef[] = {0.298723102f, 0.399775207f, 0.666667759f};
#define PH_SQRT_HALF 0x3f3504f3
#define PH_TINY 0x1p-126f
#define PH_ATANH_TERMS 7
#endif
#define PH_LOG2E ((real)1.44269504088896340736)
#define PH_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* Polynomial with the highest coefficient first (n a constant). */
PH_INL vec horner(const real *c, const int n, vec x) {
  vec p = bc(c[0]);
  PH_UNROLL for (int i = 1; i < n; i++) { p = vfma(p, x, bc(c[i])); }
  return p;
}

/* y = n ln 2 + r: returns expm1(r), and n as an integer-valued number. */
PH_INL vec expm1_reduced(vec y, vec *n) {
  const vec t = vfma(y, bc(PH_LOG2E), bc(PH_SHIFT)) - PH_SHIFT;
  const vec r = vfma(t, bc(-PH_LN2_LO), vfma(t, bc(-PH_LN2_HI), y));
  *n = t;
  return vfma(horner(exp_coef, PH_COUNT(exp_coef), r), r * r, r);
}

/* t or t/2 as the nearest integer. */
PH_INL ivec vint(vec t) { return (ivec)(t + PH_SHIFT) - (ivec)bc(PH_SHIFT); }
PH_INL ivec vint_half(vec t) { return (ivec)vfma(t, bc((real)0.5), bc(PH_SHIFT)) - (ivec)bc(PH_SHIFT); }

PH_INL vec pow2(ivec n) { return (vec)((n + PH_BIAS) << PH_MANT); }

PH_INL vec vexp(vec y) {
  vec t;
  y = vsel(y > bc(PH_EXP_HI), bc(PH_EXP_HI), y);
  y = vsel(y < bc(PH_EXP_LO), bc(PH_EXP_LO), y);
  const vec p = expm1_reduced(y, &t);
  const ivec n = vint(t);
  const ivec half = vint_half(t);
  return vmul((p + (real)1) * pow2(half), pow2(n - half));
}

PH_INL vec vtanh(vec x) {
  const ivec sign = (ivec)x & (ivec)bc((real)-0.0);
  vec a = vabs(x);
  vec t;
  a = vsel(a > bc(PH_TANH_MAX), bc(PH_TANH_MAX), a);
  const vec p = expm1_reduced(a * (real)2, &t);
  const vec scale = pow2(vint(t));
  const vec e = vfma(p, scale, scale - (real)1);
  return (vec)((ivec)(e / (e + (real)2)) | sign);
}

PH_INL vec vsigmoid(vec x) {
  const vec t = vexp(-vabs(x));
  return vsel(x < bc(0), t, bc(1)) / (t + (real)1);
}

/* ln(1 + t), 0 <= t <= 1 */
PH_INL vec vlog1p_unit(vec t) {
  const vec f = t / (t + (real)2);
  const vec s = f * f;
  vec q = bc((real)1 / (2 * PH_ATANH_TERMS + 1));
  PH_UNROLL for (int k = PH_ATANH_TERMS - 1; k > 0; k--) { q = vfma(q, s, bc((real)1 / (real)(2 * k + 1))); }
  const vec f2 = f + f;
  return vfma(f2 * s, q, f2);
}

PH_INL vec vlog(vec x) {
  const ivec tiny = x < bc(PH_TINY);
  const vec y = vsel(tiny, x * (real)((int64_t)1 << (PH_MANT + 1)), x);
  const ivec e = (ivec)((uvec)y - PH_SQRT_HALF) >> PH_MANT; /* of negative numbers too, which are set aside below */
  const vec f = (vec)((uvec)y - ((uvec)e << PH_MANT)) - (real)1;
  const vec k = (vec)(e - (tiny & (PH_MANT + 1)) + (ivec)bc(PH_SHIFT)) - PH_SHIFT;
  const vec h = vmul(f * (real)0.5, f);
  const vec s = f / (f + (real)2);
  const vec z = s * s;
  const vec tail = vfma(s, vfma(z, horner(log_coef, PH_COUNT(log_coef), z), h), vmul(k, bc(PH_LN2_LO)));
  const vec v = vfma(k, bc(PH_LN2_HI), f - (h - tail));
  const vec edge = vsel(x == bc(0), bc((real)-INFINITY), vsel(x < bc(0), bc((real)NAN), x)); /* infinity and NaN pass */
  return vsel((x > bc(0)) & (x < bc((real)INFINITY)), v, edge);
}

PH_INL vec vsoftplus(vec x) {
  const vec plus = vsel(x < bc(0), bc(0), x);
  return plus + vlog1p_unit(vexp(-vabs(x)));
}

/* What rounding took from a^2: a a - h with h = a a rounded. */
PH_INL vec square_error(vec a, vec h) {
#if PH_FUSED
  return vfma(a, a, -h);
#else
  const vec top = (vec)((ivec)a & ~ibc(((ireal)1 << (PH_MANT / 2 + 1)) - 1));
  const vec low = a - top;
  return ((top * top - h) + (top + top) * low) + low * low;
#endif
}

/* Phi(x), and e^(-x^2/2) for the density. */
PH_INL vec vphi(vec x, vec *bell) {
  vec a = vabs(x);
  a = vsel(a > bc(PH_PHI_MAX), bc(PH_PHI_MAX), a);
  const vec h = a * a;
  const vec e = vexp(h * (real)-0.5);
  *bell = vfma(e * square_error(a, h), bc((real)-0.5), e);
  const vec w = (real)1 / (a + (real)4);
  const vec q = horner(phi_coef, PH_COUNT(phi_coef), (a - (real)4) * w) * w;
  return vsel(x < bc(0), *bell * q, vfma(-*bell, q, bc(1)));
}

/* ln s for finite s > 0 in double (infinity and NaN pass): mantissa in [sqrt 1/2, sqrt 2), then 2 atanh((m-1)/(m+1)). */
PH_INL double log_double(double s) {
  union {
    double d;
    int64_t i;
  } u = {.d = s};
  if (!(s < INFINITY)) {
    return s;
  }
  const int64_t e = (u.i - 0x3fe6a09e667f3bcd) >> 52;
  u.i -= e * ((int64_t)1 << 52);
  const double f = (u.d - 1) / (u.d + 1);
  const double q = f * f;
  double p = 1.0 / 23;
  PH_UNROLL for (int k = 10; k > 0; k--) { p = dfma(p, q, 1.0 / (2 * k + 1)); }
  const double f2 = f + f;
  return dfma((double)e, 6.93147180369123816490e-01, dfma((double)e, 1.90821492927058770002e-10, dfma(f2 * q, p, f2)));
}

#endif
