/* isa_wide.h - sums along a row: 64 bytes of partial sums (16 float32 or 8 float64) whatever the vector width.
 *
 * Element j of a row always goes to partial sum j mod 16 (mod 8), and the partial sums meet in one fixed tree: halves
 * onto each other until one is left. Hence the same bits for every vector width.
 */
#ifndef PH_KERNELS_ISA_WIDE_H
#define PH_KERNELS_ISA_WIDE_H

#include "kernels/isa_vec.h"

enum { PH_PARTS = 64 / PH_VB, PH_WIDE = 64 / (int)sizeof(real), PH_DLANES = PH_VB / 8 };

typedef struct wide {
  vec p[PH_PARTS];
} wide;

#define EACH_PART PH_UNROLL for (int i_ = 0; i_ < PH_PARTS; i_++)

PH_INL wide wide_bc(real x)
{
  wide w;
  EACH_PART w.p[i_] = bc(x);
  return w;
}

/* Elements part*PH_LANES.. of a group of which n (<= PH_WIDE) exist. */
PH_INL int64_t part_len(int part, int64_t n)
{
  const int64_t left = n - (int64_t)part * PH_LANES;
  return left < 0 ? 0 : left > PH_LANES ? PH_LANES : left;
}

/* n elements, the other lanes 0. With n = PH_WIDE as a constant this is a plain load. */
PH_INL wide wide_ld(const real *p, int64_t n)
{
  wide w;
  EACH_PART w.p[i_] = ldn(p + i_ * PH_LANES, part_len(i_, n));
  return w;
}

PH_INL void wide_st(real *p, wide w, int64_t n)
{
  EACH_PART stn(p + i_ * PH_LANES, w.p[i_], part_len(i_, n));
}

/* Lanes >= n become 0. */
PH_INL wide wide_keep(wide w, int64_t n)
{
  if (n == PH_WIDE) return w;
  EACH_PART w.p[i_] = (vec)((ivec)w.p[i_] & lanes_below(part_len(i_, n)));
  return w;
}

PH_INL real tree_sum(real *s, int n)
{
  for (int h = n / 2; h > 0; h /= 2)
    for (int i = 0; i < h; i++) s[i] += s[i + h];
  return s[0];
}

PH_INL real wide_sum(wide w)
{
  real s[PH_WIDE] __attribute__((aligned(64)));
  wide_st(s, w, PH_WIDE);
  return tree_sum(s, PH_WIDE);
}

PH_INL real wide_max(wide w)
{
  real s[PH_WIDE] __attribute__((aligned(64)));
  wide_st(s, w, PH_WIDE);
  real m = s[0];
  for (int i = 1; i < PH_WIDE; i++) m = s[i] > m ? s[i] : m;
  return m;
}

/* Sum of squares of n elements times `scale`, in double: element j goes to partial sum j mod 8. */
PH_INL double sum_squares(int64_t n, const real *x, double scale)
{
  double s[8] = {0};
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    PH_UNROLL for (int i = 0; i < 8; i++)
    {
      const double v = (double)x[j + i] * scale;
      s[i] = dfma(v, v, s[i]);
    }
  for (int i = 0; j < n; i++, j++) {
    const double v = (double)x[j] * scale;
    s[i] = dfma(v, v, s[i]);
  }
  for (int h = 4; h > 0; h /= 2)
    for (int i = 0; i < h; i++) s[i] += s[i + h];
  return s[0];
}

#endif
