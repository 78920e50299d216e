/* isa_vec.h - one vector register of the instruction set, in GCC vector extensions.
 *
 * PH_ISA (portable, avx2, avx512, neon) gives the width, PH_REAL (float, double) the element. Lanes only ever hold
 * independent elements, so the width changes speed and never bits. Every multiply-add is written as vfma(), and the build
 * forbids all others (-ffp-contract=off), so the bits do not depend on the compiler either. The portable table has no fused
 * multiply-add and rounds twice.
 */
#ifndef PH_KERNELS_ISA_VEC_H
#define PH_KERNELS_ISA_VEC_H

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "kernels/kern.h"

#ifndef PH_ISA
#define PH_ISA portable
#endif
#ifndef PH_REAL
#define PH_REAL float
#endif

#define PH_PASTE2(a, b) a##b
#define PH_PASTE(a, b) PH_PASTE2(a, b)
#define PH_TEXT2(a) #a
#define PH_TEXT(a) PH_TEXT2(a)

#define PH_BYTES_portable 16
#define PH_BYTES_avx2 32
#define PH_BYTES_avx512 64
#define PH_BYTES_neon 16
#define PH_FUSED_portable 0
#define PH_FUSED_avx2 1
#define PH_FUSED_avx512 1
#define PH_FUSED_neon 1
#define PH_DOUBLE_float 0
#define PH_DOUBLE_double 1

#define PH_VB PH_PASTE(PH_BYTES_, PH_ISA)       /* bytes of a vector */
#define PH_FUSED PH_PASTE(PH_FUSED_, PH_ISA)    /* multiply-add rounds once */
#define PH_DOUBLE PH_PASTE(PH_DOUBLE_, PH_REAL) /* element is float64 */

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PH_INL static inline __attribute__((always_inline))
#define PH_FUN static __attribute__((noinline, unused))
#if defined(__clang__)
#define PH_UNROLL _Pragma("unroll")
#else
#define PH_UNROLL _Pragma("GCC unroll 32")
#endif
/* i from 0 to n - 1, n a constant, unrolled */
#define PH_EACH(i, n) PH_UNROLL for (int i = 0; i < (n); i++)

typedef PH_REAL real;
#define PH_MAX (PH_DOUBLE ? (real)__DBL_MAX__ : (real)__FLT_MAX__) /* the largest finite number */
#if PH_DOUBLE
typedef int64_t ireal;
typedef uint64_t ureal;
#define PH_LANES (PH_VB / 8)
#else
typedef int32_t ireal;
typedef uint32_t ureal;
#define PH_LANES (PH_VB / 4)
#endif

typedef real vec __attribute__((vector_size(PH_VB)));
typedef real vec_mem __attribute__((vector_size(PH_VB), aligned(sizeof(real)), may_alias));
typedef ireal ivec __attribute__((vector_size(PH_VB)));
typedef ureal uvec __attribute__((vector_size(PH_VB))); /* sums wrap around */

PH_INL vec ld(const real *p) { return (vec) * (const vec_mem *)p; }
PH_INL void st(real *p, vec v) { *(vec_mem *)p = (vec_mem)v; }
PH_INL vec bc(real x) { return x - (vec){0}; }
PH_INL ivec ibc(ireal x) { return x - (ivec){0}; }

/* a*b + c */
PH_INL vec vfma(vec a, vec b, vec c) {
#if PH_VB == 64 && PH_DOUBLE
  return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif PH_VB == 64
  return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif PH_VB == 32 && PH_DOUBLE
  return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif PH_VB == 32
  return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif PH_FUSED && PH_DOUBLE
  return (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif PH_FUSED
  return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

/* A product that a later sum cannot be contracted with. */
PH_INL vec vmul(vec a, vec b) { return vfma(a, b, bc((real)-0.0)); }

/* a*b + c of single numbers. */
PH_INL double dfma(double a, double b, double c) {
#if PH_FUSED
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

PH_INL vec vsqrt(vec a) {
#if PH_VB == 64 && PH_DOUBLE
  return (vec)_mm512_sqrt_pd((__m512d)a);
#elif PH_VB == 64
  return (vec)_mm512_sqrt_ps((__m512)a);
#elif PH_VB == 32 && PH_DOUBLE
  return (vec)_mm256_sqrt_pd((__m256d)a);
#elif PH_VB == 32
  return (vec)_mm256_sqrt_ps((__m256)a);
#else
  vec r;
  PH_EACH(i, PH_LANES) r[i] = (real)__builtin_sqrt(a[i]);
  return r;
#endif
}

/* mask ? a : b, lane by lane; masks are all ones or all zeros, as comparisons give them. */
PH_INL vec vsel(ivec mask, vec a, vec b) { return (vec)((mask & (ivec)a) | (~mask & (ivec)b)); }
/* Is any lane of a mask set? */
PH_INL int vany(ivec mask) {
#if PH_VB == 64 && PH_DOUBLE
  return _mm512_movepi64_mask((__m512i)mask) != 0;
#elif PH_VB == 64
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif PH_VB == 32
  return _mm256_movemask_epi8((__m256i)mask) != 0;
#else
  ireal any = 0;
  PH_EACH(i, PH_LANES) any |= mask[i];
  return any != 0;
#endif
}
PH_INL vec vabs(vec a) { return (vec)((ivec)a & ~(ivec)bc((real)-0.0)); }
/* Larger of two; b where the comparison is unordered. */
PH_INL vec vmax(vec a, vec b) { return vsel(a > b, a, b); }

PH_INL ivec lane_index(void) {
  ivec v;
  PH_EACH(i, PH_LANES) v[i] = i;
  return v;
}

/* All ones in lanes < n. */
PH_INL ivec lanes_below(int64_t n) { return lane_index() < ibc((ireal)n); }

/* The first n elements (0 <= n <= PH_LANES), the other lanes 0; touches only those n in memory. */
PH_INL vec ld_part(const real *p, int64_t n) {
#if PH_VB == 64 && PH_DOUBLE
  return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#elif PH_VB == 64
  return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif PH_VB == 32 && PH_DOUBLE
  return (vec)_mm256_maskload_pd(p, (__m256i)lanes_below(n));
#elif PH_VB == 32
  return (vec)_mm256_maskload_ps(p, (__m256i)lanes_below(n));
#else
  vec v = {0};
  for (int i = 0; i < n; i++) {
    v[i] = p[i];
  }
  return v;
#endif
}

PH_INL void st_part(real *p, vec v, int64_t n) {
#if PH_VB == 64 && PH_DOUBLE
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif PH_VB == 64
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif PH_VB == 32 && PH_DOUBLE
  _mm256_maskstore_pd(p, (__m256i)lanes_below(n), (__m256d)v);
#elif PH_VB == 32
  _mm256_maskstore_ps(p, (__m256i)lanes_below(n), (__m256)v);
#else
  for (int i = 0; i < n; i++) {
    p[i] = v[i];
  }
#endif
}

/* n elements where n is PH_LANES (a constant: a plain access) or fewer. */
PH_INL vec ldn(const real *p, int64_t n) { return n == PH_LANES ? ld(p) : ld_part(p, n); }
PH_INL void stn(real *p, vec v, int64_t n) {
  if (n == PH_LANES) {
    st(p, v);
  } else {
    st_part(p, v, n);
  }
}

/* Rows without gaps are one long row. */
PH_INL void join_rows(int64_t *rows, int64_t *cols, int gaps) {
  if (gaps || *rows < 2) {
    return;
  }
  *cols *= *rows;
  *rows = 1;
}

#endif
