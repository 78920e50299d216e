/* ref_abreast.h - the twins of what float64 alone has: normal numbers one by one, and eight problems one after the other. */

static void REF(normal)(ph_rng rng, uint64_t first, double scale, int64_t n, double *x) {
  for (int64_t i = 0; i < n; i++) {
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  }
}

static void REF(normal8)(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x) {
  for (int64_t i = 0; i < 2 * pairs; i++) {
    for (uint64_t l = 0; l < PH_ABREAST; l++) {
      x[8 * i + (int64_t)l] = scale * ph_rng_normal(rng, 2 * (pair + l * stride) + (uint64_t)i);
    }
  }
}

/* x <- 2 k^{-1} x - x for the problem that x starts at; k is spoiled. */
static void reflect(int64_t d, big *k, double *x) {
  big y[PH_ABREAST_WIDTH];
  for (int64_t i = 0; i < d; i++) {
    y[i] = x[8 * i];
  }
  eliminate(d, 1, k, y);
  for (int64_t i = 0; i < d; i++) {
    x[8 * i] = (double)(2 * y[i] - x[8 * i]);
  }
}

static void REF(cayley8)(int64_t d, const double *U, double *K, double *x) {
  static big k[PH_ABREAST_WIDTH * PH_ABREAST_WIDTH];
  (void)K;
  for (int64_t l = 0; l < PH_ABREAST; l++) {
    const double *next = U + l;
    for (int64_t i = 0; i < d; i++) {
      k[i * d + i] = 1;
      for (int64_t j = i + 1; j < d; j++, next += 8) {
        k[i * d + j] = (big)*next / 2;
        k[j * d + i] = -(big)*next / 2;
      }
    }
    reflect(d, k, x + l);
  }
}

static void REF(damp8)(int64_t d, const double *R, const double *half, double *K, double *x) {
  static big k[PH_ABREAST_WIDTH * PH_ABREAST_WIDTH];
  (void)K;
  for (int64_t l = 0; l < PH_ABREAST; l++) {
    for (int64_t i = 0; i < d * d; i++) {
      k[i] = (big)half[l] * R[8 * i + l] + (i % (d + 1) == 0);
    }
    reflect(d, k, x + l);
  }
}

static void REF(gram8)(int64_t d, const double *L, double *R, double *trace, double *square) {
  for (int64_t l = 0; l < PH_ABREAST; l++) {
    big t = 0;
    big q = 0;
    for (int64_t i = 0; i < d * d; i++) {
      big s = 0;
      for (int64_t p = 0; p < d; p++) {
        s += (big)L[8 * (i / d * d + p) + l] * L[8 * (i % d * d + p) + l];
      }
      R[8 * i + l] = (double)s;
      t += i % (d + 1) == 0 ? s : 0;
      q += s * s;
    }
    trace[l] = (double)t;
    square[l] = (double)q;
  }
}

static void REF(gemv8)(int64_t d, const double *B, const double *u, double *y) {
  for (int64_t i = 0; i < d; i++) {
    for (int64_t l = 0; l < PH_ABREAST; l++) {
      big s = 0;
      for (int64_t j = 0; j < d; j++) {
        s += (big)B[8 * (i * d + j) + l] * u[8 * j + l];
      }
      y[8 * i + l] = (double)s;
    }
  }
}

static void REF(norm8)(int64_t d, const double *x, double *out) {
  for (int64_t l = 0; l < PH_ABREAST; l++) {
    big s = 0;
    for (int64_t i = 0; i < d; i++) {
      s += (big)x[8 * i + l] * x[8 * i + l];
    }
    out[l] = (double)sqrtl(s);
  }
}
