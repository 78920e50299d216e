/* isa_abreast.h - small dense systems of eight problems abreast; for float64 alone.
 *
 * Element (i, j) of eight matrices is one group of eight numbers, of which a pass takes a vector of lanes. Lanes never meet, so a
 * pass needs no shuffle and the width changes no bit. Elimination goes in panels of four columns, without pivots.
 */
#ifndef PH_KERNELS_ISA_ABREAST_H
#define PH_KERNELS_ISA_ABREAST_H

#include "kernels/isa_wide.h"

/* The lanes of element e, and the passes over all eight of them: pointers of a pass start at lane l. */
PH_INL vec ld8(const double *p, int64_t e) { return ld(p + PH_ABREAST * e); }
PH_INL void st8(double *p, int64_t e, vec v) { st(p + PH_ABREAST * e, v); }
#define EACH_PASS(l) for (int l = 0; l < PH_ABREAST; l += PH_LANES)

/* Factors columns k .. k+3 of the rows below, and rows k .. k+3 to the right; multipliers stay in place, 1/pivot goes to inv. */
PH_INL void panel8(int64_t d, int64_t k, double *K, double *x, vec *inv) {
  for (int64_t p = k; p < k + 4; p++) {
    inv[p] = bc(1) / ld8(K, p * d + p);
    for (int64_t i = p + 1; i < d; i++) {
      const vec l = ld8(K, i * d + p) * inv[p];
      st8(K, i * d + p, l);
      const int64_t end = i < k + 4 ? d : k + 4;
      for (int64_t j = p + 1; j < end; j++) {
        st8(K, i * d + j, vfma(-l, ld8(K, p * d + j), ld8(K, i * d + j)));
      }
      st8(x, i, vfma(-l, ld8(x, p), ld8(x, i)));
    }
  }
}

/* The trailing rows below pivot block k, two at a time: K_ij -= sum of four products. */
PH_INL void trail8(int64_t d, int64_t k, double *K) {
  const double *u = K + PH_ABREAST * k * d;
  for (int64_t i = k + 4; i < d; i += 2) {
    double *a = K + PH_ABREAST * i * d;
    double *b = a + PH_ABREAST * d;
    vec la[4];
    vec lb[4];
    PH_EACH(p, 4) {
      la[p] = -ld8(a, k + p);
      lb[p] = -ld8(b, k + p);
    }
    for (int64_t j = k + 4; j < d; j++) {
      vec s = ld8(a, j);
      vec t = ld8(b, j);
      PH_EACH(p, 4) {
        s = vfma(la[p], ld8(u, p * d + j), s);
        t = vfma(lb[p], ld8(u, p * d + j), t);
      }
      st8(a, j, s);
      st8(b, j, t);
    }
  }
}

/* x <- 2 K^{-1} x - x; K is destroyed. */
PH_INL void reflect8(int64_t d, double *K, double *x) {
  vec inv[PH_ABREAST_WIDTH];
  vec old[PH_ABREAST_WIDTH];
  for (int64_t i = 0; i < d; i++) {
    old[i] = ld8(x, i);
  }
  for (int64_t k = 0; k < d; k += 4) {
    panel8(d, k, K, x, inv);
    trail8(d, k, K);
  }
  for (int64_t i = d - 1; i >= 0; i--) {
    vec s = ld8(x, i);
    for (int64_t j = i + 1; j < d; j++) {
      s = vfma(-ld8(K, i * d + j), ld8(x, j), s);
    }
    st8(x, i, s * inv[i]);
  }
  for (int64_t i = 0; i < d; i++) {
    st8(x, i, vfma(bc(2), ld8(x, i), -old[i]));
  }
}

PH_FUN void k_cayley8(int64_t d, const double *U, double *K, double *x) {
  EACH_PASS(l) {
    const double *next = U + l;
    for (int64_t i = 0; i < d; i++) {
      st8(K + l, i * d + i, bc(1));
      for (int64_t j = i + 1; j < d; j++, next += PH_ABREAST) {
        const vec s = ld(next) * 0.5;
        st8(K + l, i * d + j, s);
        st8(K + l, j * d + i, -s);
      }
    }
    reflect8(d, K + l, x + l);
  }
}

PH_FUN void k_damp8(int64_t d, const double *R, const double *half, double *K, double *x) {
  EACH_PASS(l) {
    const vec h = ld(half + l);
    for (int64_t i = 0; i < d * d; i++) {
      st8(K + l, i, h * ld8(R + l, i));
    }
    for (int64_t i = 0; i < d; i++) {
      st8(K + l, i * d + i, vmul(h, ld8(R + l, i * d + i)) + 1);
    }
    reflect8(d, K + l, x + l);
  }
}

/* A 4 x 4 tile of L L^T at rows i and j, and its mirror. */
PH_INL void gram_tile8(int64_t d, const double *L, int64_t i, int64_t j, double *R) {
  vec s[4][4] = {{{0}}};
  for (int64_t k = 0; k < d; k++) {
    vec b[4];
    PH_EACH(q, 4) b[q] = ld8(L, (j + q) * d + k);
    PH_EACH(p, 4) {
      const vec a = ld8(L, (i + p) * d + k);
      PH_EACH(q, 4) s[p][q] = vfma(a, b[q], s[p][q]);
    }
  }
  PH_EACH(p, 4) {
    PH_EACH(q, 4) {
      st8(R, (i + p) * d + j + q, s[p][q]);
      st8(R, (j + q) * d + i + p, s[p][q]);
    }
  }
}

PH_FUN void k_gram8(int64_t d, const double *L, double *R, double *trace, double *square) {
  EACH_PASS(l) {
    vec t = {0};
    vec s = {0};
    for (int64_t i = 0; i < d; i += 4) {
      for (int64_t j = 0; j <= i; j += 4) {
        gram_tile8(d, L + l, i, j, R + l);
      }
    }
    for (int64_t i = 0; i < d; i++) {
      vec row = {0};
      for (int64_t j = 0; j < d; j++) {
        const vec r = ld8(R + l, i * d + j);
        row = vfma(r, r, row);
      }
      s += row;
      t += ld8(R + l, i * d + i);
    }
    st(trace + l, t);
    st(square + l, s);
  }
}

PH_FUN void k_gemv8(int64_t d, const double *B, const double *u, double *y) {
  EACH_PASS(l) {
    for (int64_t i = 0; i < d; i++) {
      vec s = {0};
      for (int64_t j = 0; j < d; j++) {
        s = vfma(ld8(B + l, i * d + j), ld8(u + l, j), s);
      }
      st8(y + l, i, s);
    }
  }
}

PH_FUN void k_norm8(int64_t d, const double *x, double *out) {
  EACH_PASS(l) {
    vec scale = bc(0x1p-1022);
    vec sum = {0};
    for (int64_t i = 0; i < d; i++) {
      scale = vmax(scale, vabs(ld8(x + l, i)));
    }
    for (int64_t i = 0; i < d; i++) {
      const vec r = ld8(x + l, i) / scale;
      sum = vfma(r, r, sum);
    }
    st(out + l, scale * vsqrt(sum));
  }
}

#endif
