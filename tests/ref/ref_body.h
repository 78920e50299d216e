/* ref_body.h - the twins for one element type, REF_REAL (REF_DTYPE), and their table, REF_TABLE. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ref_act.h"

typedef REF_REAL real;
static big get(const void *p, int64_t i) { return ((const real *)p)[i]; }
static void put(void *p, int64_t i, big v) { ((real *)p)[i] = (real)v; }
static void put_or_add(void *p, int64_t i, big v, int acc) { put(p, i, acc ? get(p, i) + v : v); }

static void REF(gemm)(int64_t m, int64_t n, int64_t k, const void *A, int64_t ra, int64_t ca, const void *B,
                      int64_t ldb, const void *D, int64_t ldd, const void *bias, void *C, int64_t ldc) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      big s = (D ? get(D, i * ldd + j) : 0) + (bias ? get(bias, j) : 0);
      for (int64_t p = 0; p < k; p++) {
        s += get(A, i * ra + p * ca) * get(B, p * ldb + j);
      }
      put(C, i * ldc + j, s);
    }
  }
}

static void REF(transpose)(int64_t m, int64_t n, const void *A, int64_t lda, void *B, int64_t ldb) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      put(B, j * ldb + i, get(A, i * lda + j));
    }
  }
}

static void REF(act)(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put(y, r * ldy + j, ph_ref_act(f, get(x, r * ldx + j)));
    }
  }
}

static void REF(act_bwd)(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy,
                         const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      const big s = ph_ref_act_slope(f, ph_act_from_output(f) ? get(y, r * ldy + j) : get(x, r * ldx + j));
      put_or_add(gx, r * ldgx + j, get(gy, r * ldg + j) * s, acc);
    }
  }
}

static void REF(axpby)(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, double b, const void *y,
                       int64_t ldy, void *z, int64_t ldz) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put(z, r * ldz + j, (real)a * get(x, r * ldx + j) + (y ? (real)b * get(y, r * ldy + j) : 0));
    }
  }
}

static void REF(mul)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *z,
                     int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put_or_add(z, r * ldz + j, get(x, r * ldx + j) * get(y, r * ldy + j), acc);
    }
  }
}

static void REF(colsum)(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *out, int acc) {
  for (int64_t j = 0; j < cols; j++) {
    big s = 0;
    for (int64_t r = 0; r < rows; r++) {
      s += get(x, r * ldx + j);
    }
    put_or_add(out, j, s, acc);
  }
}

static void REF(add_row)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *y, int64_t ldy) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put(y, r * ldy + j, get(x, r * ldx + j) + get(v, j));
    }
  }
}

static void REF(layernorm)(int64_t rows, int64_t cols, double eps, const void *x, int64_t ldx, const void *gamma,
                           const void *beta, void *y, int64_t ldy, void *stat) {
  for (int64_t r = 0; r < rows && cols > 0; r++) {
    big mean = 0;
    big var = 0;
    for (int64_t j = 0; j < cols; j++) {
      mean += get(x, r * ldx + j) / cols;
    }
    for (int64_t j = 0; j < cols; j++) {
      var += (get(x, r * ldx + j) - mean) * (get(x, r * ldx + j) - mean) / cols;
    }
    const big rs = 1 / sqrtl(var + (real)eps);
    for (int64_t j = 0; j < cols; j++) {
      put(y, r * ldy + j, get(gamma, j) * (get(x, r * ldx + j) - mean) * rs + get(beta, j));
    }
    put(stat, 2 * r, mean);
    put(stat, 2 * r + 1, rs);
  }
}

static void REF(layernorm_bwd)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *gamma,
                               const void *stat, const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc_x,
                               void *ggamma, void *gbeta, int acc_p) {
  for (int64_t j = 0; j < cols; j++) {
    big sg = 0;
    big sb = 0;
    for (int64_t r = 0; r < rows; r++) {
      sg += get(gy, r * ldg + j) * (get(x, r * ldx + j) - get(stat, 2 * r)) * get(stat, 2 * r + 1);
      sb += get(gy, r * ldg + j);
    }
    if (ggamma) {
      put_or_add(ggamma, j, sg, acc_p);
    }
    if (gbeta) {
      put_or_add(gbeta, j, sb, acc_p);
    }
  }
  for (int64_t r = 0; r < rows; r++) {
    const big mean = get(stat, 2 * r);
    const big rs = get(stat, 2 * r + 1);
    big mq = 0;
    big mqx = 0;
    for (int64_t j = 0; j < cols; j++) {
      const big q = get(gamma, j) * get(gy, r * ldg + j);
      mq += q / cols;
      mqx += q * (get(x, r * ldx + j) - mean) * rs / cols;
    }
    for (int64_t j = 0; gx && j < cols; j++) {
      const big xh = (get(x, r * ldx + j) - mean) * rs;
      put_or_add(gx, r * ldgx + j, rs * (get(gamma, j) * get(gy, r * ldg + j) - mq - xh * mqx), acc_x);
    }
  }
}

static void REF(softmax_ce)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const int32_t *label,
                            double smoothing, const double *weight, double scale, double *loss, int32_t *hit, void *g,
                            int64_t ldg) {
  for (int64_t r = 0; r < rows && cols > 0; r++) {
    int64_t top = 0;
    big sum = 0;
    big all = 0;
    big value = 0;
    for (int64_t j = 1; j < cols; j++) {
      top = get(x, r * ldx + j) > get(x, r * ldx + top) ? j : top;
    }
    const big largest = get(x, r * ldx + top);
    for (int64_t j = 0; j < cols; j++) {
      sum += expl(get(x, r * ldx + j) - largest);
    }
    for (int64_t j = 0; j < cols; j++) {
      const big a = (weight ? weight[j] : 1) * ((j == label[r]) * (1 - (big)smoothing) + (big)smoothing / cols);
      all += a;
      value += a * (logl(sum) + largest - get(x, r * ldx + j));
    }
    loss[r] = (double)value;
    hit[r] = sum == sum && top == label[r];
    for (int64_t j = 0; j < cols && g; j++) {
      const big a = (weight ? weight[j] : 1) * ((j == label[r]) * (1 - (big)smoothing) + (big)smoothing / cols);
      put(g, r * ldg + j, scale * (all * expl(get(x, r * ldx + j) - largest) / sum - a));
    }
  }
}

static void REF(misfit)(ph_misfit f, double delta, int64_t rows, int64_t cols, const void *x, int64_t ldx,
                        const void *t, int64_t ldt, double scale, double *loss, void *g, int64_t ldg) {
  for (int64_t r = 0; r < rows && cols > 0; r++) {
    big s = 0;
    for (int64_t j = 0; j < cols; j++) {
      const big e = get(x, r * ldx + j) - get(t, r * ldt + j);
      const big a = fabsl(e);
      const big sign = (e > 0) - (e < 0);
      const big slope = f == PH_MISFIT_SQUARE ? 2 * e : f == PH_MISFIT_ABS ? sign : a < delta ? e : delta * sign;
      s += (f == PH_MISFIT_SQUARE ? e * e
            : f == PH_MISFIT_ABS  ? a
            : a < delta           ? e * e / 2
                                  : delta * (a - (big)delta / 2)) /
           cols;
      if (g) {
        put(g, r * ldg + j, scale * slope / cols);
      }
    }
    loss[r] = (double)s;
  }
}

static void REF(rownorm)(int64_t rows, int64_t cols, const void *x, int64_t ldx, double *out) {
  for (int64_t r = 0; r < rows; r++) {
    big s = 0;
    for (int64_t j = 0; j < cols; j++) {
      s += get(x, r * ldx + j) * get(x, r * ldx + j);
    }
    out[r] = (double)sqrtl(s);
  }
}

static void REF(skew)(int64_t count, int64_t d, const void *A, int64_t stepa, void *S, int64_t steps) {
  for (int64_t c = 0; c < count; c++) {
    for (int64_t i = 0; i < d; i++) {
      for (int64_t j = 0; j < d; j++) {
        put(S, c * steps + i * d + j, get(A, c * stepa + i * d + j) - get(A, c * stepa + j * d + i));
      }
    }
  }
}

static void REF(add_diagonal)(int64_t d, double b, void *X) {
  for (int64_t i = 0; i < d; i++) {
    put(X, i * d + i, get(X, i * d + i) + b);
  }
}

static double REF(trace)(int64_t d, const void *X) {
  big s = 0;
  for (int64_t i = 0; i < d; i++) {
    s += get(X, i * d + i);
  }
  return (double)s;
}

static void REF(adam)(int64_t n, void *p, const void *g, void *m, void *v, const ph_adam *o) {
  for (int64_t i = 0; i < n; i++) {
    const big x = get(g, i);
    const big old = get(p, i);
    const big m1 = o->beta1 * get(m, i) + (1 - (big)o->beta1) * x;
    const big v1 = o->beta2 * get(v, i) + (1 - (big)o->beta2) * x * x;
    put(m, i, m1);
    put(v, i, v1);
    put(p, i, old - o->lr * o->weight_decay * old - o->lr * (m1 * o->c1) / (sqrtl(v1 * o->c2) + o->eps));
  }
}

static void REF(sgd)(int64_t n, void *p, const void *g, void *v, double lr, double momentum, double weight_decay) {
  for (int64_t i = 0; i < n; i++) {
    const big v1 = momentum * get(v, i) + get(g, i) + weight_decay * get(p, i);
    put(v, i, v1);
    put(p, i, get(p, i) - lr * v1);
  }
}

static int64_t REF(first_nonfinite)(int64_t n, const void *x) {
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite((double)get(x, i))) {
      return i;
    }
  }
  return -1;
}

static double REF(sumsq)(int64_t n, const void *x) {
  big s = 0;
  for (int64_t i = 0; i < n; i++) {
    s += get(x, i) * get(x, i);
  }
  return (double)s;
}

static double REF(dot)(int64_t n, const void *x, const void *y) {
  big s = 0;
  for (int64_t i = 0; i < n; i++) {
    s += get(x, i) * get(y, i);
  }
  return (double)s;
}

#include "ref_pair.h"
#include "ref_solve.h"
#if REF_ABREAST
#include "ref_abreast.h"
#endif

const ph_kern REF_TABLE = {
    .name = "ref",
    .dtype = REF_DTYPE,
    .lanes = 1,
    .epsilon = REF_DTYPE == PH_F64 ? 0x1p-52 : 0x1p-23,
    .gemm = REF(gemm),
    .transpose = REF(transpose),
    .act = REF(act),
    .act_bwd = REF(act_bwd),
    .axpby = REF(axpby),
    .mul = REF(mul),
    .div = REF(div),
    .where = REF(where),
    .mul_row = REF(mul_row),
    .mul_col = REF(mul_col),
    .coldot = REF(coldot),
    .rowdot = REF(rowdot),
    .softmax = REF(softmax),
    .softmax_bwd = REF(softmax_bwd),
    .colsum = REF(colsum),
    .add_row = REF(add_row),
    .layernorm = REF(layernorm),
    .layernorm_bwd = REF(layernorm_bwd),
    .softmax_ce = REF(softmax_ce),
    .misfit = REF(misfit),
    .rownorm = REF(rownorm),
    .inverse = REF(inverse),
    .solve = REF(solve),
    .cholesky = REF(cholesky),
    .cholesky_bwd = REF(cholesky_bwd),
    .add_diagonal = REF(add_diagonal),
    .trace = REF(trace),
    .skew = REF(skew),
    .adam = REF(adam),
    .sgd = REF(sgd),
    .first_nonfinite = REF(first_nonfinite),
    .sumsq = REF(sumsq),
    .dot = REF(dot),
#if REF_ABREAST
    .normal = REF(normal),
    .normal8 = REF(normal8),
    .cayley8 = REF(cayley8),
    .damp8 = REF(damp8),
    .gram8 = REF(gram8),
    .gemv8 = REF(gemv8),
    .norm8 = REF(norm8),
#endif
};
