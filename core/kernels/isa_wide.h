/* isa_wide.h - sums along a row: 64 bytes of partial sums (16 float32 or 8 float64) whatever the vector width.
 *
 * Element j of a row always goes to partial sum j mod 16 (mod 8), and the partial sums meet in one fixed tree: halves
 * onto each other until one is left. Hence the same bits for every vector width.
 */
#ifndef PH_KERNELS_ISA_WIDE_H
#define PH_KERNELS_ISA_WIDE_H

#include "kernels/isa_vec.h"

enum { PH_PARTS = 64 / PH_VB, PH_WIDE = 64 / (int)sizeof(real) };

typedef struct wide {
  vec p[PH_PARTS];
} wide;

#define EACH_PART PH_EACH(i_, PH_PARTS)

PH_INL wide wide_bc(real x) {
  wide w;
  EACH_PART w.p[i_] = bc(x);
  return w;
}

/* Elements part*PH_LANES.. of a group of which n (<= PH_WIDE) exist. */
PH_INL int64_t part_len(int part, int64_t n) {
  const int64_t left = n - (int64_t)part * PH_LANES;
  return left < 0 ? 0 : left > PH_LANES ? PH_LANES : left;
}

/* n elements, the other lanes 0. With n = PH_WIDE as a constant this is a plain load. */
PH_INL wide wide_ld(const real *p, int64_t n) {
  wide w;
  EACH_PART w.p[i_] = ldn(p + i_ * PH_LANES, part_len(i_, n));
  return w;
}

PH_INL void wide_st(real *p, wide w, int64_t n) { EACH_PART stn(p + i_ * PH_LANES, w.p[i_], part_len(i_, n)); }

/* Lanes >= n become 0. */
PH_INL wide wide_keep(wide w, int64_t n) {
  if (n == PH_WIDE) {
    return w;
  }
  EACH_PART w.p[i_] = (vec)((ivec)w.p[i_] & lanes_below(part_len(i_, n)));
  return w;
}

typedef real quarter_vec __attribute__((vector_size(16)));
#if PH_VB == 64
typedef real half_vec __attribute__((vector_size(32)));
#endif
#if PH_DOUBLE
#define PH_LO2 0, 1
#define PH_HI2 2, 3
#define PH_LO4 0, 1, 2, 3
#define PH_HI4 4, 5, 6, 7
#else
#define PH_LO2 0, 1, 2, 3
#define PH_HI2 4, 5, 6, 7
#define PH_LO4 0, 1, 2, 3, 4, 5, 6, 7
#define PH_HI4 8, 9, 10, 11, 12, 13, 14, 15
#endif

/* The tree: 64 bytes to 32 to 16 by adding the upper half to the lower, then the last 2 or 4 numbers the same way. */
PH_INL real wide_sum(wide w) {
#if PH_VB == 64
  const half_vec h = __builtin_shufflevector(w.p[0], w.p[0], PH_LO4) + __builtin_shufflevector(w.p[0], w.p[0], PH_HI4);
  const quarter_vec q = __builtin_shufflevector(h, h, PH_LO2) + __builtin_shufflevector(h, h, PH_HI2);
#elif PH_VB == 32
  const vec h = w.p[0] + w.p[1];
  const quarter_vec q = __builtin_shufflevector(h, h, PH_LO2) + __builtin_shufflevector(h, h, PH_HI2);
#else
  const quarter_vec q = (w.p[0] + w.p[2]) + (w.p[1] + w.p[3]);
#endif
#if PH_DOUBLE
  return q[0] + q[1];
#else
  return (q[0] + q[2]) + (q[1] + q[3]);
#endif
}

/* Sum of squares of n elements times `scale`, in double: element j goes to partial sum j mod 32 (four chains of eight
 * hide the latency of the multiply-add). */
PH_INL double sum_squares(int64_t n, const real *x, double scale) {
  double s[32] = {0};
  int64_t j = 0;
  for (; j + 32 <= n; j += 32) {
    PH_EACH(i, 32) {
      const double v = (double)x[j + i] * scale;
      s[i] = dfma(v, v, s[i]);
    }
  }
  for (int i = 0; j < n; i++, j++) {
    const double v = (double)x[j] * scale;
    s[i] = dfma(v, v, s[i]);
  }
  for (int h = 16; h > 0; h /= 2) {
    for (int i = 0; i < h; i++) {
      s[i] += s[i + h];
    }
  }
  return s[0];
}

#endif
