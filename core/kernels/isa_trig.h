/* isa_trig.h - sine and cosine of every finite number, the same bits on every table with FMA.
 *
 *   |x| = n pi/2 + r, |r| <= pi/4;  sin r = r + r z P(z),  cos r = 1 - z/2 + z^2 Q(z),  z = r^2
 *
 * Near (|x| <= PH_TRIG_NEAR): n pi/2 is taken away in four pieces, the first three so short that n times them is exact, so r
 * keeps its digits also where x is next to a multiple of pi/2. Far: the fraction of x 2/pi in integers, from as many bits
 * of 2/pi as the exponent of x asks for (Payne and Hanek), lane by lane.
 * P, Q: polynomials of least largest error, found by Remez exchange; relative error below 2^-28 (float32) and 2^-57 (float64).
 *                                                                                       <= 2.5 ulp
 * sin is odd (the sign of zero stays), |sin|, |cos| <= 1; infinity and NaN give NaN.
 */
#ifndef PH_KERNELS_ISA_TRIG_H
#define PH_KERNELS_ISA_TRIG_H

#include "kernels/isa_math.h"

#if PH_DOUBLE
#define PH_TRIG_NEAR 1.0e6
static const real half_pi_piece[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
static const real sin_coef[] = {1.5896504941941355e-10,  -2.5050753264458127e-08, 2.7557313662057089e-06,
                                -0.00019841269829725202, 0.008333333333322316,    -0.16666666666666632};
static const real cos_coef[] = {-1.1359448645483269e-11, 2.0875719558083914e-09, -2.7557314326026691e-07,
                                2.4801587289394916e-05,  -0.001388888888887399,  0.041666666666666602};
#else
#define PH_TRIG_NEAR 3000.0f
static const real half_pi_piece[] = {0x1.921p+0f, 0x1.f6ap-13f, 0x1.11p-26f, 0x1.68c234p-39f};
static const real sin_coef[] = {-1.95166562e-4f, 8.33217334e-3f, -1.66666552e-1f};
static const real cos_coef[] = {2.44377297e-5f, -1.38873619e-3f, 4.16666456e-2f};
#endif

/* The first 1280 bits of 2/pi, after 64 zeros. */
static const uint64_t two_over_pi[] = {0,
                                       0xa2f9836e4e441529,
                                       0xfc2757d1f534ddc0,
                                       0xdb6295993c439041,
                                       0xfe5163abdebbc561,
                                       0xb7246e3a424dd2e0,
                                       0x06492eea09d1921c,
                                       0xfe1deb1cb129a73e,
                                       0xe88235f52ebb4484,
                                       0xe99c7026b45f7e41,
                                       0x3991d639835339f4,
                                       0x9c845f8bbdf9283b,
                                       0x1ff897ffde05980f,
                                       0xef2f118b5a0a6d1f,
                                       0x6d367ecf27cb09b7,
                                       0x4f463f669e5fea2d,
                                       0x7527bac7ebe5f17b,
                                       0x3d0739f78a5292ea,
                                       0x6bfb5fb11f8d5d08,
                                       0x56033046fc7b6bab,
                                       0xf0cfbc209af4361d};

__extension__ typedef unsigned __int128 u128;

/* 64 bits of the table from bit i on. */
PH_INL uint64_t bits_at(int i) {
  const uint64_t *w = two_over_pi + i / 64;
  return i % 64 ? w[0] << i % 64 | w[1] >> (64 - i % 64) : w[0];
}

/* x 2/pi modulo 4 in units of 2^-126, for x = m 2^e with an integer m < 2^53: the bits of 2/pi whose product with 2^e is a multiple
 * of 4 are left out, of the others 192 are used. */
PH_INL u128 quarters(uint64_t m, int e) {
  const int from = 64 + e - 2;
  const u128 low = (u128)m * bits_at(from + 128);
  const u128 middle = (u128)m * bits_at(from + 64) + (uint64_t)(low >> 64);
  const uint64_t high = m * bits_at(from) + (uint64_t)(middle >> 64);
  return (u128)high << 64 | (uint64_t)middle;
}

/* f 2^-128 pi/2 for 0 <= f < 2^128 */
PH_INL double of_fraction(u128 f) {
  const int zeros = f >> 64 ? __builtin_clzll((uint64_t)(f >> 64)) : 64;
  const uint64_t top = (uint64_t)(f << zeros >> 64);
  return ldexp((double)(uint64_t)((u128)top * 0xc90fdaa22168c234 >> 64), -63 - zeros);
}

/* r and n modulo 4 of a finite x > PH_TRIG_NEAR. */
PH_FUN int reduce_far(double x, double *r) {
  int e;
  const double mantissa = frexp(x, &e);
  const u128 v = quarters((uint64_t)ldexp(mantissa, 53), e - 53);
  const u128 f = v << 2;
  const int up = (int)(f >> 127);
  *r = up ? -of_fraction(-f) : of_fraction(f);
  return (int)(v >> 126) + up;
}

PH_FUN void reduce_lanes(vec a, vec *r, ivec *n) {
  PH_EACH(i, PH_LANES) {
    double f = NAN;
    if (a[i] <= (real)PH_TRIG_NEAR) {
      continue;
    }
    if (a[i] < (real)INFINITY) {
      (*n)[i] = reduce_far((double)a[i], &f);
    }
    (*r)[i] = (real)f;
  }
}

/* sin(a + turns pi/2) for a >= 0 or NaN. */
PH_INL vec sin_turned(vec a, ireal turns) {
  const vec t = vfma(a, bc((real)0.63661977236758134308), bc(PH_SHIFT)) - PH_SHIFT;
  ivec n = vint(t);
  vec r = a;
  PH_EACH(i, 4) { r = vfma(t, bc(-half_pi_piece[i]), r); }
  if (vany(~(a <= bc(PH_TRIG_NEAR)))) {
    reduce_lanes(a, &r, &n);
  }
  n += turns;
  const vec z = r * r;
  const vec h = z * (real)0.5;
  const vec w = (real)1 - h;
  const vec sine = vfma(r * z, horner(sin_coef, PH_COUNT(sin_coef), z), r);
  const vec cosine = w + vfma(z * z, horner(cos_coef, PH_COUNT(cos_coef), z), ((real)1 - w) - h);
  const ivec minus = ((n & 2) == 2) & (ivec)bc((real)-0.0);
  return (vec)((ivec)vsel((n & 1) == 1, cosine, sine) ^ minus);
}

PH_INL vec vsin(vec x) {
  const ivec sign = (ivec)x & (ivec)bc((real)-0.0);
  return (vec)((ivec)sin_turned(vabs(x), 0) ^ sign);
}

PH_INL vec vcos(vec x) { return sin_turned(vabs(x), 1); }

#endif
