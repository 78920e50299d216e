/* ref_solve.h - the twins of the inverses, of solve and of Cholesky for one element type; ref_body.h includes it. */

enum { MOST = 200 };

/* Gauss-Jordan with row pivoting on [a (d, d) | x (d, m)]. */
static void eliminate(int64_t d, int64_t m, big *a, big *x) {
  for (int64_t k = 0; k < d; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < d; i++) {
      best = fabsl(a[i * d + k]) > fabsl(a[best * d + k]) ? i : best;
    }
    const big p = a[best * d + k];
    for (int64_t j = 0; j < d; j++) {
      const big u = a[best * d + j];
      a[best * d + j] = a[k * d + j];
      a[k * d + j] = u / p;
    }
    for (int64_t j = 0; j < m; j++) {
      const big u = x[best * m + j];
      x[best * m + j] = x[k * m + j];
      x[k * m + j] = u / p;
    }
    for (int64_t i = 0; i < d; i++) {
      const big f = i == k ? 0 : a[i * d + k];
      for (int64_t j = 0; j < d; j++) {
        a[i * d + j] -= f * a[k * d + j];
      }
      for (int64_t j = 0; j < m; j++) {
        x[i * m + j] -= f * x[k * m + j];
      }
    }
  }
}

static void REF(solve)(int64_t count, int64_t d, int64_t m, const void *A, int64_t stepa, const void *B, int64_t stepb,
                       void *X, int64_t stepx, void *scratch) {
  static big a[MOST * MOST];
  static big x[MOST * MOST];
  (void)scratch;
  assert(d <= MOST && m <= MOST);
  for (int64_t c = 0; c < count; c++) {
    int spoiled = 0;
    for (int64_t i = 0; i < d * d; i++) {
      a[i] = get(A, c * stepa + i);
    }
    for (int64_t i = 0; i < d * m; i++) {
      x[i] = B ? get(B, c * stepb + i) : i % (d + 1) == 0;
    }
    eliminate(d, m, a, x);
    for (int64_t i = 0; i < d * m; i++) {
      spoiled |= !isfinite((double)x[i]);
    }
    for (int64_t i = 0; i < d * m; i++) {
      put(X, c * stepx + i, spoiled ? NAN : x[i]);
    }
  }
}

static void REF(inverse)(int64_t count, int64_t d, void *K, int64_t step, int refine, double *resid, void *scratch) {
  (void)refine;
  REF(solve)(count, d, d, K, step, NULL, 0, K, step, scratch);
  for (int64_t c = 0; c < count && d > 0 && resid; c++) {
    resid[c] = 0;
  }
}

static void REF(cholesky)(int64_t count, int64_t d, const void *A, int64_t stepa, void *L, int64_t stepl,
                          void *scratch) {
  static big l[MOST * MOST];
  (void)scratch;
  assert(d <= MOST);
  for (int64_t c = 0; c < count; c++) {
    int definite = 1;
    for (int64_t i = 0; i < d; i++) {
      for (int64_t j = 0; j < d; j++) {
        big s = (get(A, c * stepa + i * d + j) + get(A, c * stepa + j * d + i)) / 2;
        for (int64_t k = 0; k < j && j <= i; k++) {
          s -= l[i * d + k] * l[j * d + k];
        }
        definite &= i != j || (s > 0 && isfinite((double)s));
        l[i * d + j] = i == j ? sqrtl(s) : i > j ? s / l[j * d + j] : 0;
      }
    }
    for (int64_t i = 0; i < d * d; i++) {
      put(L, c * stepl + i, definite ? l[i] : NAN);
    }
  }
}

/* The recurrence run backwards: from the last entry of L to the first, each hands its cotangent to what it was made from. */
static void REF(cholesky_bwd)(int64_t count, int64_t d, const void *L, int64_t stepl, const void *G, int64_t stepg,
                              void *GA, int64_t stepga, int acc, void *scratch) {
  static big g[MOST * MOST];
  static big s[MOST * MOST];
  (void)scratch;
  for (int64_t c = 0; c < count; c++) {
    for (int64_t i = 0; i < d * d; i++) {
      g[i] = get(G, c * stepg + i);
      s[i] = 0;
    }
    for (int64_t i = d - 1; i >= 0; i--) {
      for (int64_t j = i; j >= 0; j--) {
        const big pivot = get(L, c * stepl + j * d + j);
        const big t = i == j ? g[i * d + i] / (2 * pivot) : g[i * d + j] / pivot;
        g[j * d + j] -= i == j ? 0 : g[i * d + j] * get(L, c * stepl + i * d + j) / pivot;
        for (int64_t k = 0; k < j; k++) {
          g[i * d + k] -= t * get(L, c * stepl + j * d + k);
          g[j * d + k] -= t * get(L, c * stepl + i * d + k);
        }
        s[i * d + j] += t / 2;
        s[j * d + i] += t / 2;
      }
    }
    for (int64_t i = 0; i < d * d; i++) {
      put_or_add(GA, c * stepga + i, s[i], acc);
    }
  }
}
