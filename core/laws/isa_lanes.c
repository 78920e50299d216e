/* isa_lanes.c - small dense systems of eight streams at once, in GCC vector extensions; compiled once per instruction set. */
#include "laws/lanes.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

typedef double vd __attribute__((vector_size(64), may_alias));
typedef int64_t vi __attribute__((vector_size(64)));

static inline vd root(vd x) {
  vd y;
  for (int lane = 0; lane < 8; lane++) {
    y[lane] = __builtin_sqrt(x[lane]);
  }
  return y;
}

static inline vd larger(vd a, vd b) {
  vi more = (vi)(a > b);
  return (vd)((more & (vi)a) | (~more & (vi)b));
}

static inline vd magnitude(vd x) { return (vd)((vi)x & 0x7fffffffffffffff); }

/* Factors columns k .. k+3 of the rows below, and rows k .. k+3 to the right; multipliers stay in place, 1/pivot goes to inv. */
static inline void panel(int64_t d, int64_t k, vd *K, vd *x, vd *inv) {
  for (int64_t p = k; p < k + 4; p++) {
    inv[p] = 1 / K[p * d + p];
    for (int64_t i = p + 1; i < d; i++) {
      vd l = K[i * d + p] * inv[p];
      K[i * d + p] = l;
      int64_t end = i < k + 4 ? d : k + 4;
      for (int64_t j = p + 1; j < end; j++) {
        K[i * d + j] -= l * K[p * d + j];
      }
      x[i] -= l * x[p];
    }
  }
}

/* The trailing rows below pivot block k, two at a time: K_ij -= sum of four products. */
static inline void trail(int64_t d, int64_t k, vd *K) {
  const vd *u0 = K + k * d;
  const vd *u1 = u0 + d;
  const vd *u2 = u1 + d;
  const vd *u3 = u2 + d;
  for (int64_t i = k + 4; i < d; i += 2) {
    vd *a = K + i * d;
    vd *b = a + d;
    vd a0 = a[k];
    vd a1 = a[k + 1];
    vd a2 = a[k + 2];
    vd a3 = a[k + 3];
    vd b0 = b[k];
    vd b1 = b[k + 1];
    vd b2 = b[k + 2];
    vd b3 = b[k + 3];
    for (int64_t j = k + 4; j < d; j++) {
      vd s = a[j];
      vd t = b[j];
      s -= a0 * u0[j];
      t -= b0 * u0[j];
      s -= a1 * u1[j];
      t -= b1 * u1[j];
      s -= a2 * u2[j];
      t -= b2 * u2[j];
      s -= a3 * u3[j];
      t -= b3 * u3[j];
      a[j] = s;
      b[j] = t;
    }
  }
}

enum { WIDEST = 64 };

/* x <- 2 K^{-1} x - x; K is destroyed. */
static inline void reflect(int64_t d, vd *K, vd *x) {
  vd inv[WIDEST];
  vd old[WIDEST];
  for (int64_t i = 0; i < d; i++) {
    old[i] = x[i];
  }
  for (int64_t k = 0; k < d; k += 4) {
    panel(d, k, K, x, inv);
    trail(d, k, K);
  }
  for (int64_t i = d - 1; i >= 0; i--) {
    vd s = x[i];
    for (int64_t j = i + 1; j < d; j++) {
      s -= K[i * d + j] * x[j];
    }
    x[i] = s * inv[i];
  }
  for (int64_t i = 0; i < d; i++) {
    x[i] = 2 * x[i] - old[i];
  }
}

static void transport(int64_t d, const double *U_, double *K_, double *x) {
  const vd *U = (const vd *)U_;
  vd *K = (vd *)K_;
  for (int64_t i = 0; i < d; i++) {
    K[i * d + i] = (vd){1, 1, 1, 1, 1, 1, 1, 1};
    for (int64_t j = i + 1; j < d; j++) {
      vd s = 0.5 * *U++;
      K[i * d + j] = s;
      K[j * d + i] = -s;
    }
  }
  reflect(d, K, (vd *)x);
}

/* A 4 x 4 tile of L L^T at rows i and j. */
static inline void gram_tile(int64_t d, const vd *L, int64_t i, int64_t j, vd *R) {
  vd s[4][4] = {{{0}}};
  for (int64_t k = 0; k < d; k++) {
    vd b[4];
    for (int q = 0; q < 4; q++) {
      b[q] = L[(j + q) * d + k];
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; p++) {
      vd a = L[(i + p) * d + k];
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++) {
        s[p][q] += a * b[q];
      }
    }
  }
  for (int p = 0; p < 4; p++) {
    for (int q = 0; q < 4; q++) {
      R[(i + p) * d + j + q] = s[p][q];
      R[(j + q) * d + i + p] = s[p][q];
    }
  }
}

static void gram(int64_t d, const double *L, double *R_, double trace[8], double square[8]) {
  vd *R = (vd *)R_;
  vd t = {0};
  vd s = {0};
  for (int64_t i = 0; i < d; i += 4) {
    for (int64_t j = 0; j <= i; j += 4) {
      gram_tile(d, (const vd *)L, i, j, R);
    }
  }
  for (int64_t i = 0; i < d; i++) {
    t += R[i * d + i];
    vd row = {0};
    for (int64_t j = 0; j < d; j++) {
      row += R[i * d + j] * R[i * d + j];
    }
    s += row;
  }
  __builtin_memcpy(trace, &t, sizeof t);
  __builtin_memcpy(square, &s, sizeof s);
}

static void damp(int64_t d, const double *R_, const double half_[8], double *K_, double *x) {
  const vd *R = (const vd *)R_;
  vd *K = (vd *)K_;
  vd half;
  __builtin_memcpy(&half, half_, sizeof half);
  for (int64_t i = 0; i < d * d; i++) {
    K[i] = half * R[i];
  }
  for (int64_t i = 0; i < d; i++) {
    K[i * d + i] += 1;
  }
  reflect(d, K, (vd *)x);
}

static void port(int64_t d, const double *B_, const double *u_, double *y_) {
  const vd *B = (const vd *)B_;
  const vd *u = (const vd *)u_;
  vd *y = (vd *)y_;
  for (int64_t i = 0; i < d; i++) {
    vd s = {0};
    for (int64_t j = 0; j < d; j++) {
      s += B[i * d + j] * u[j];
    }
    y[i] = s;
  }
}

static void add(int64_t d, const double *y, double *x) {
  for (int64_t i = 0; i < d; i++) {
    ((vd *)x)[i] += ((const vd *)y)[i];
  }
}

static void norm(int64_t d, const double *x_, double out[8]) {
  const vd *x = (const vd *)x_;
  vd most = {0};
  vd sum = {0};
  for (int64_t i = 0; i < d; i++) {
    most = larger(most, magnitude(x[i]));
  }
  vd least = {0x1p-1022, 0x1p-1022, 0x1p-1022, 0x1p-1022, 0x1p-1022, 0x1p-1022, 0x1p-1022, 0x1p-1022};
  vd scale = larger(most, least);
  for (int64_t i = 0; i < d; i++) {
    vd r = x[i] / scale;
    sum += r * r;
  }
  vd y = scale * root(sum);
  __builtin_memcpy(out, &y, sizeof y);
}

extern const ph_laws_lanes PASTE(ph_laws_lanes_, PH_ISA);
const ph_laws_lanes PASTE(ph_laws_lanes_, PH_ISA) = {transport, gram, damp, port, add, norm};
