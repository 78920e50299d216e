/* isa_gauss.c - Philox4x32-10 and Box-Muller on eight lanes, in GCC vector extensions; compiled once per instruction set.
 *
 * Every operation and its order are those of base/rng.c (ph_rng_block, ph_rng_log, ph_rng_turn); a test compares the bits.
 * There are no branches: choices are masks, and integers become doubles by adding 2^52, which is exact.
 */
#include "laws/gauss.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

typedef double vd __attribute__((vector_size(64)));
typedef int64_t vi __attribute__((vector_size(64)));
typedef uint64_t vu __attribute__((vector_size(64)));

#define LOW 0xffffffffu

/* Products of the low halves of the lanes. GCC does not see that the high halves are zero and would multiply 64 bits by 64. */
static inline vu product(vu a, uint32_t b) {
#if defined(__AVX512F__)
  return (vu)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  union {
    vu whole;
    __m256i half[2];
  } p = {.whole = a};
  p.half[0] = _mm256_mul_epu32(p.half[0], _mm256_set1_epi64x(b));
  p.half[1] = _mm256_mul_epu32(p.half[1], _mm256_set1_epi64x(b));
  return p.whole;
#else
  return (a & LOW) * (uint64_t)b;
#endif
}

static inline vd choose(vi mask, vd yes, vd no) { return (vd)((mask & (vi)yes) | (~mask & (vi)no)); }

/* Exact for 0 <= u < 2^52. */
static inline vd double_of(vu u) { return (vd)(u | 0x4330000000000000u) - 0x1p52; }

/* (u >> 11) 2^-53 for all 64 bits of u: exact, by conversion or by halves. */
static inline vd unit(vu u) {
#if defined(__AVX512DQ__)
  return __builtin_convertvector((vi)(u >> 11), vd) * 0x1p-53;
#else
  return (double_of(u >> 32) * 0x1p21 + double_of((u >> 11) & 0x1fffffu)) * 0x1p-53;
#endif
}

/* The words c0 .. c3 live in the low halves of the lanes; what is in the high halves does not matter before the end. */
static inline void philox(ph_rng rng, vu j, vu *first, vu *second) {
  vu c0 = j & LOW;
  vu c1 = j >> 32;
  vu c2 = {0};
  vu c3 = {0};
  uint32_t k0 = rng.key[0];
  uint32_t k1 = rng.key[1];
  for (int round = 0; round < 10; round++) {
    vu p0 = product(c0, 0xd2511f53u);
    vu p1 = product(c2, 0xcd9e8d57u);
    c0 = (p1 >> 32) ^ c1 ^ (uint64_t)k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ (uint64_t)k1;
    c3 = p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  *first = (c0 & LOW) | c1 << 32;
  *second = (c2 & LOW) | c3 << 32;
}

static inline vd log_of(vd x) {
  vu bits = (vu)x;
  vu k = ((bits + 0x00095f619980c433u) >> 52) - 1023;
  vd kd = (vd)(k + 0x4338000000000000u) - 0x1.8p52;
  vd m = (vd)(bits - (k << 52));
  vd s = (m - 1) / (m + 1);
  vd q = s * s;
  vd sum = {0};
#pragma GCC unroll 11
  for (int n = 23; n >= 3; n -= 2) {
    sum = q * (1.0 / n + sum);
  }
  return kd * 0x1.62e42feep-1 + (2 * s + (2 * s * sum + kd * 0x1.a39ef35793c76p-33));
}

static inline void turn(vd u, vd *sine, vd *cosine) {
  vd four = 4 * u + 0.5;
  vu quarter = -(vu)((four >= 1) + (four >= 2) + (four >= 3) + (four >= 4));
  vd r = u - 0.25 * double_of(quarter);
  vd x = 0x1.921fb54442d18p+2 * r;
  vd q = x * x;
  vd s = {0};
  vd c = {0};
#pragma GCC unroll 8
  for (int n = 16; n >= 2; n -= 2) {
    s = q * (-1.0 / (n * (n + 1))) * (1 + s);
    c = q * (-1.0 / (n * (n - 1))) * (1 + c);
  }
  s = x + x * s;
  c = 1 + c;
  vi odd = -(vi)(quarter & 1);
  vu sine_sign = ((quarter >> 1) & 1) << 63;
  vu cosine_sign = (((quarter + 1) >> 1) & 1) << 63;
  *sine = (vd)((vu)choose(odd, c, s) ^ sine_sign);
  *cosine = (vd)((vu)choose(odd, s, c) ^ cosine_sign);
}

static inline vd root(vd x) {
  vd y;
  for (int lane = 0; lane < 8; lane++) {
    y[lane] = __builtin_sqrt(x[lane]);
  }
  return y;
}

/* Numbers 2j and 2j+1 of the stream, scaled, for eight j. */
static inline void normal_pair(ph_rng rng, vu j, double scale, vd *even, vd *odd) {
  vu first;
  vu second;
  vd sine;
  vd cosine;
  philox(rng, j, &first, &second);
  vd radius = root(-2 * log_of(unit(first) + 0x1p-53));
  turn(unit(second), &sine, &cosine);
  *even = scale * (radius * cosine);
  *odd = scale * (radius * sine);
}

static const vu LANE = {0, 1, 2, 3, 4, 5, 6, 7};

ph_laws_gauss_fn PASTE(ph_laws_gauss_, PH_ISA);
ph_laws_gauss8_fn PASTE(ph_laws_gauss8_, PH_ISA);

void PASTE(ph_laws_gauss_, PH_ISA)(ph_rng rng, uint64_t pair, double scale, int64_t blocks, double *x) {
  for (int64_t b = 0; b < blocks; b++, x += 16) {
    vd even;
    vd odd;
    normal_pair(rng, pair + 8 * (uint64_t)b + LANE, scale, &even, &odd);
    vd low = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
    vd high = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
    __builtin_memcpy(x, &low, sizeof low);
    __builtin_memcpy(x + 8, &high, sizeof high);
  }
}

void PASTE(ph_laws_gauss8_, PH_ISA)(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs,
                                    double *x) {
  vu j = pair + stride * LANE;
  for (int64_t i = 0; i < pairs; i++, x += 16) {
    vd even;
    vd odd;
    normal_pair(rng, j + (uint64_t)i, scale, &even, &odd);
    __builtin_memcpy(x, &even, sizeof even);
    __builtin_memcpy(x + 8, &odd, sizeof odd);
  }
}
