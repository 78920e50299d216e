/* isa_tile.h - linear work on tiles: scaled sums, products, column sums, transposes. */
#ifndef PH_KERNELS_ISA_TILE_H
#define PH_KERNELS_ISA_TILE_H

#include "kernels/isa_vec.h"

/* b y + (a x): one rounding of a x (none for a = 1), one of the sum. */
PH_INL void axpby_step(real a, const real *x, real b, const real *y, real *z, int64_t n) {
  const vec ax = a * ldn(x, n);
  stn(z, y ? vfma(bc(b), ldn(y, n), ax) : ax, n);
}

PH_FUN void k_axpby(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, double b, const void *y,
                    int64_t ldy, void *z, int64_t ldz) {
  join_rows(&rows, &cols, ldx != cols || ldz != cols || (y && ldy != cols));
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *yr = y ? (const real *)y + r * ldy : NULL;
    real *zr = (real *)z + r * ldz;
    int64_t j = 0;
    if (y) {
      for (; j + PH_LANES <= cols; j += PH_LANES) {
        axpby_step((real)a, xr + j, (real)b, yr + j, zr + j, PH_LANES);
      }
    } else {
      for (; j + PH_LANES <= cols; j += PH_LANES) {
        axpby_step((real)a, xr + j, 0, NULL, zr + j, PH_LANES);
      }
    }
    if (j < cols) {
      axpby_step((real)a, xr + j, (real)b, y ? yr + j : NULL, zr + j, cols - j);
    }
  }
}

PH_INL void mul_step(const real *x, const real *y, real *z, int acc, int64_t n) {
  const vec a = ldn(x, n);
  const vec b = ldn(y, n);
  stn(z, acc ? vfma(a, b, ldn(z, n)) : a * b, n);
}

PH_FUN void k_mul(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *z,
                  int64_t ldz, int acc) {
  join_rows(&rows, &cols, ldx != cols || ldy != cols || ldz != cols);
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    const real *yr = (const real *)y + r * ldy;
    real *zr = (real *)z + r * ldz;
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES) {
      mul_step(xr + j, yr + j, zr + j, acc, PH_LANES);
    }
    if (j < cols) {
      mul_step(xr + j, yr + j, zr + j, acc, cols - j);
    }
  }
}

PH_FUN void k_add_row(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *y, int64_t ldy) {
  const real *vr = v;
  for (int64_t r = 0; r < rows; r++) {
    const real *xr = (const real *)x + r * ldx;
    real *yr = (real *)y + r * ldy;
    int64_t j = 0;
    for (; j + PH_LANES <= cols; j += PH_LANES) {
      st(yr + j, ld(xr + j) + ld(vr + j));
    }
    if (j < cols) {
      st_part(yr + j, ld_part(xr + j, cols - j) + ld_part(vr + j, cols - j), cols - j);
    }
  }
}

/* nv vectors of columns, the last one of n elements. */
PH_INL void colsum_panel(const int nv, int64_t n, int64_t rows, const real *x, int64_t ldx, real *out, int acc) {
  vec s[4];
  PH_EACH(i, nv) s[i] = acc ? ldn(out + i * PH_LANES, i < nv - 1 ? PH_LANES : n) : (vec){0};
  for (int64_t r = 0; r < rows; r++) {
    PH_EACH(i, nv) s[i] += ldn(x + r * ldx + i * PH_LANES, i < nv - 1 ? PH_LANES : n);
  }
  PH_EACH(i, nv) stn(out + i * PH_LANES, s[i], i < nv - 1 ? PH_LANES : n);
}

PH_FUN void k_colsum(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *out, int acc) {
  const real *xr = x;
  real *o = out;
  int64_t j = 0;
  for (; j + 4 * PH_LANES <= cols; j += 4 * PH_LANES) {
    colsum_panel(4, PH_LANES, rows, xr + j, ldx, o + j, acc);
  }
  for (; j + PH_LANES <= cols; j += PH_LANES) {
    colsum_panel(1, PH_LANES, rows, xr + j, ldx, o + j, acc);
  }
  if (j < cols) {
    colsum_panel(1, cols - j, rows, xr + j, ldx, o + j, acc);
  }
}

/* n contiguous zeros; n NaN; n numbers with their signs turned; a tile without gaps. */
PH_INL void k_zero(int64_t n, real *x) {
  int64_t j = 0;
  for (; j <= n - PH_LANES; j += PH_LANES) {
    st(x + j, (vec){0});
  }
  if (j < n) {
    st_part(x + j, (vec){0}, n - j);
  }
}

PH_INL void k_fill_nan(int64_t n, real *x) {
  for (int64_t i = 0; i < n; i++) {
    x[i] = (real)NAN;
  }
}

PH_INL void k_negate(int64_t n, real *x) {
  int64_t j = 0;
  for (; j <= n - PH_LANES; j += PH_LANES) {
    st(x + j, -ld(x + j));
  }
  if (j < n) {
    st_part(x + j, -ld_part(x + j, n - j), n - j);
  }
}

PH_INL void k_copy(int64_t rows, int64_t cols, const real *x, int64_t ldx, real *to) {
  for (int64_t r = 0; r < rows; r++, x += ldx, to += cols) {
    int64_t j = 0;
    for (; j <= cols - PH_LANES; j += PH_LANES) {
      st(to + j, ld(x + j));
    }
    if (j < cols) {
      st_part(to + j, ld_part(x + j, cols - j), cols - j);
    }
  }
}

/* Lane patterns that interleave the lower and the upper halves of two vectors. */
#if PH_LANES == 16
#define PH_ZIP_LO 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define PH_ZIP_HI 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif PH_LANES == 8
#define PH_ZIP_LO 0, 8, 1, 9, 2, 10, 3, 11
#define PH_ZIP_HI 4, 12, 5, 13, 6, 14, 7, 15
#elif PH_LANES == 4
#define PH_ZIP_LO 0, 4, 1, 5
#define PH_ZIP_HI 2, 6, 3, 7
#else
#define PH_ZIP_LO 0, 2
#define PH_ZIP_HI 1, 3
#endif

/* A square of registers: log2(lanes) perfect shuffles of rows i and i + half transpose it. */
PH_INL void transpose_square(vec r[PH_LANES]) {
  PH_UNROLL for (int stage = 1; stage < PH_LANES; stage *= 2) {
    vec s[PH_LANES];
    PH_EACH(i, PH_LANES / 2) {
      s[2 * i] = __builtin_shufflevector(r[i], r[i + PH_LANES / 2], PH_ZIP_LO);
      s[2 * i + 1] = __builtin_shufflevector(r[i], r[i + PH_LANES / 2], PH_ZIP_HI);
    }
    PH_EACH(i, PH_LANES) r[i] = s[i];
  }
}

/* m, n <= PH_LANES; constants for a whole square */
PH_INL void transpose_block(int64_t m, int64_t n, const real *A, int64_t lda, real *B, int64_t ldb) {
  vec r[PH_LANES];
  PH_EACH(i, PH_LANES) r[i] = i < m ? ldn(A + i * lda, n) : (vec){0};
  transpose_square(r);
  PH_EACH(i, PH_LANES) if (i < n) { stn(B + i * ldb, r[i], m); }
}

PH_FUN void k_transpose(int64_t m, int64_t n, const void *A, int64_t lda, void *B, int64_t ldb) {
  for (int64_t i = 0; i < m; i += PH_LANES) {
    for (int64_t j = 0; j < n; j += PH_LANES) {
      const real *a = (const real *)A + i * lda + j;
      real *b = (real *)B + j * ldb + i;
      const int64_t mi = m - i;
      const int64_t nj = n - j;
      if (mi >= PH_LANES && nj >= PH_LANES) {
        transpose_block(PH_LANES, PH_LANES, a, lda, b, ldb);
      } else {
        transpose_block(mi < PH_LANES ? mi : PH_LANES, nj < PH_LANES ? nj : PH_LANES, a, lda, b, ldb);
      }
    }
  }
}

PH_FUN void k_skew(int64_t count, int64_t d, const void *A, int64_t stepa, void *S, int64_t steps) {
  for (int64_t c = 0; c < count; c++) {
    const real *a = (const real *)A + c * stepa;
    real *s = (real *)S + c * steps;
    k_transpose(d, d, a, d, s, d);
    k_axpby(1, d * d, 1, a, d * d, -1, s, d * d, s, d * d);
  }
}

PH_FUN void k_add_diagonal(int64_t d, double b, void *X) {
  for (int64_t i = 0; i < d; i++) {
    ((real *)X)[i * d + i] += (real)b;
  }
}

PH_FUN double k_trace(int64_t d, const void *X) {
  double sum = 0;
  for (int64_t i = 0; i < d; i++) {
    sum += (double)((const real *)X)[i * d + i];
  }
  return sum;
}

#endif
