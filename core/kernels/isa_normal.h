/* isa_normal.h - normal numbers in bulk: Philox4x32-10 and Box-Muller on a vector of pairs; for float64 alone.
 *
 * Every operation and its order are those of base/rng.c (ph_rng_block, ph_rng_log, ph_rng_turn), and products that are not exact
 * feed no bare sum (vmul), so the bits are those of ph_rng_normal on every instruction set. There are no branches: choices are
 * masks, and integers become doubles by adding 2^52, which is exact.
 */
#ifndef PH_KERNELS_ISA_NORMAL_H
#define PH_KERNELS_ISA_NORMAL_H

#include "kernels/isa_tile.h"
#include "kernels/isa_wide.h"

#define PH_LOW_HALF 0xffffffffu

/* Products of the low halves of the lanes. GCC does not see that the high halves are zero and would multiply 64 bits by 64. */
PH_INL uvec product_low(uvec a, uint32_t b) {
#if PH_VB == 64
  return (uvec)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif PH_VB == 32
  return (uvec)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__x86_64__)
  return (uvec)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
  return (a & PH_LOW_HALF) * (uint64_t)b;
#endif
}

/* Exact for 0 <= u < 2^52. */
PH_INL vec double_of(uvec u) { return (vec)(u | 0x4330000000000000u) - 0x1p52; }

/* (u >> 11) 2^-53 for all 64 bits of u: exact, by conversion or by halves. */
PH_INL vec unit_of(uvec u) {
#if PH_VB == 64
  return __builtin_convertvector((ivec)(u >> 11), vec) * 0x1p-53;
#else
  return vfma(double_of(u >> 32), bc(0x1p21), double_of((u >> 11) & 0x1fffffu)) * 0x1p-53;
#endif
}

/* The words c0 .. c3 live in the low halves of the lanes; what is in the high halves does not matter before the end. */
PH_INL void philox(ph_rng rng, uvec j, uvec *first, uvec *second) {
  uvec c0 = j & PH_LOW_HALF;
  uvec c1 = j >> 32;
  uvec c2 = {0};
  uvec c3 = {0};
  uint32_t k0 = rng.key[0];
  uint32_t k1 = rng.key[1];
  for (int round = 0; round < 10; round++) {
    const uvec p0 = product_low(c0, 0xd2511f53u);
    const uvec p1 = product_low(c2, 0xcd9e8d57u);
    c0 = (p1 >> 32) ^ c1 ^ (uint64_t)k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ (uint64_t)k1;
    c3 = p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  *first = (c0 & PH_LOW_HALF) | c1 << 32;
  *second = (c2 & PH_LOW_HALF) | c3 << 32;
}

/* ph_rng_log */
PH_INL vec log_of_unit(vec x) {
  const uvec bits = (uvec)x;
  const uvec k = ((bits + 0x00095f619980c433u) >> 52) - 1023;
  const vec kd = (vec)(k + 0x4338000000000000u) - 0x1.8p52;
  const vec m = (vec)(bits - (k << 52));
  const vec s = (m - 1) / (m + 1);
  const vec q = s * s;
  vec sum = {0};
  PH_UNROLL for (int n = 23; n >= 3; n -= 2) { sum = vmul(q, sum + 1.0 / n); }
  const vec tail = vmul(s + s, sum) + vmul(kd, bc(0x1.a39ef35793c76p-33));
  return vmul(kd, bc(0x1.62e42feep-1)) + ((s + s) + tail);
}

/* ph_rng_turn */
PH_INL void turn(vec u, vec *sine, vec *cosine) {
  const vec four = vfma(u, bc(4), bc(0.5));
  const uvec quarter = -(uvec)((four >= bc(1)) + (four >= bc(2)) + (four >= bc(3)) + (four >= bc(4)));
  const vec r = vfma(double_of(quarter), bc(-0.25), u); /* exact */
  const vec x = vmul(r, bc(0x1.921fb54442d18p+2));
  const vec q = x * x;
  vec s = {0};
  vec c = {0};
  PH_UNROLL for (int n = 16; n >= 2; n -= 2) {
    s = vmul(q * (-1.0 / (n * (n + 1))), s + 1);
    c = vmul(q * (-1.0 / (n * (n - 1))), c + 1);
  }
  s = x + vmul(x, s);
  c = c + 1;
  const ivec odd = -(ivec)(quarter & 1);
  const uvec sine_sign = ((quarter >> 1) & 1) << 63;
  const uvec cosine_sign = (((quarter + 1) >> 1) & 1) << 63;
  *sine = (vec)((uvec)vsel(odd, c, s) ^ sine_sign);
  *cosine = (vec)((uvec)vsel(odd, s, c) ^ cosine_sign);
}

/* Numbers 2j and 2j+1 of the stream, scaled, for a vector of j. */
PH_INL void normal_pair(ph_rng rng, uvec j, double scale, vec *even, vec *odd) {
  uvec first;
  uvec second;
  vec sine;
  vec cosine;
  philox(rng, j, &first, &second);
  const vec radius = vsqrt(log_of_unit(unit_of(first) + 0x1p-53) * -2);
  turn(unit_of(second), &sine, &cosine);
  *even = radius * cosine * scale;
  *odd = radius * sine * scale;
}

/* Sixteen numbers, from 2 pair on. */
PH_INL void normal_sixteen(ph_rng rng, uint64_t pair, double scale, double *x) {
  EACH_PART {
    vec even;
    vec odd;
    normal_pair(rng, (uvec)lane_index() + (pair + (uint64_t)(i_ * PH_LANES)), scale, &even, &odd);
    st(x + 2 * i_ * PH_LANES, __builtin_shufflevector(even, odd, PH_ZIP_LO));
    st(x + (2 * i_ + 1) * PH_LANES, __builtin_shufflevector(even, odd, PH_ZIP_HI));
  }
}

PH_FUN void k_normal(ph_rng rng, uint64_t first, double scale, int64_t n, double *x) {
  int64_t i = 0;
  for (; i < n && (first + (uint64_t)i) % 2 != 0; i++) {
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  }
  for (; i + 16 <= n; i += 16) {
    normal_sixteen(rng, (first + (uint64_t)i) / 2, scale, x + i);
  }
  for (; i < n; i++) {
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  }
}

PH_FUN void k_normal8(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x) {
  for (int64_t i = 0; i < pairs; i++, x += 16) {
    EACH_PART {
      vec even;
      vec odd;
      const uvec lane = (uvec)lane_index() + (uint64_t)(i_ * PH_LANES);
      normal_pair(rng, lane * stride + (pair + (uint64_t)i), scale, &even, &odd);
      st(x + i_ * PH_LANES, even);
      st(x + 8 + i_ * PH_LANES, odd);
    }
  }
}

#endif
