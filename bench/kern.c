/* kern.c - rates of the kernels as fractions of this core's multiply-add peak, measured in the same process.
 *
 * Usage: bench_kern [table]. Every figure is the best of many short runs: other programs only ever slow one down. The peak is a
 * loop of independent multiply-adds in registers, in the vectors of the table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/kern.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define BEST(seconds, budget, repeat, statement) \
  do {                                           \
    const double begin_ = now();                 \
    seconds = 1e9;                               \
    while (now() - begin_ < (budget)) {          \
      const double t_ = now();                   \
      for (int r_ = 0; r_ < (repeat); r_++) {    \
        statement;                               \
      }                                          \
      const double s_ = (now() - t_) / (repeat); \
      seconds = s_ < seconds ? s_ : seconds;     \
    }                                            \
  } while (0)

#define FMA_LOOP(name, bytes, chains, target_isa)                                                                    \
  typedef float vec_##name __attribute__((vector_size(bytes)));                                                      \
  __attribute__((target(target_isa), noinline, optimize("O3", "fp-contract=fast"))) static void loop_##name(int n) { \
    vec_##name a[chains];                                                                                            \
    const vec_##name x = (vec_##name){0} + 0.5f;                                                                     \
    const vec_##name y = (vec_##name){0} + 1.0f;                                                                     \
    _Pragma("GCC unroll 32") for (int j = 0; j < chains; j++) { a[j] = y * (float)j; }                               \
    for (int i = 0; i < n; i++) {                                                                                    \
      _Pragma("GCC unroll 32") for (int j = 0; j < chains; j++) { a[j] = a[j] * x + y; }                             \
    }                                                                                                                \
    volatile float sink = 0;                                                                                         \
    _Pragma("GCC unroll 32") for (int j = 0; j < chains; j++) { sink += a[j][0]; }                                   \
  }
#if defined(__x86_64__)
FMA_LOOP(avx512, 64, 24, "arch=x86-64-v4,prefer-vector-width=512")
FMA_LOOP(avx2, 32, 12, "arch=x86-64-v3")
FMA_LOOP(portable, 16, 10, "sse2")
#endif

/* GFLOP/s of float32; float64 has half of it. */
static double peak(const char *table) {
  double s = 1;
#if defined(__x86_64__)
  if (strcmp(table, "avx512") == 0) {
    BEST(s, 0.05, 1, loop_avx512(20000));
    return 2e-9 * 20000 * 24 * 16 / s;
  }
  if (strcmp(table, "avx2") == 0) {
    BEST(s, 0.05, 1, loop_avx2(20000));
    return 2e-9 * 20000 * 12 * 8 / s;
  }
  BEST(s, 0.05, 1, loop_portable(20000));
  return 2e-9 * 20000 * 10 * 4 / s;
#else
  return ph_kern_peak(PH_F32, s);
#endif
}

static void *filled(ph_dtype type, int64_t n) {
  void *p = ph_mem_new((size_t)n, type == PH_F64 ? 8 : 4);
  for (int64_t i = 0; p && i < n; i++) {
    const double v = (double)(i * 7919 % 2003) / 1001.5 - 1;
    if (type == PH_F64) {
      ((double *)p)[i] = v;
    } else {
      ((float *)p)[i] = (float)v;
    }
  }
  return p;
}

static void bench_gemm(const ph_kern *k, double pk) {
  static const struct {
    int m, n, k, transposed, add;
  } rows[] = {
      {16, 64, 32, 0, 0},   {32, 64, 32, 0, 0},  {64, 64, 32, 0, 0},  {128, 64, 32, 0, 0},  {64, 32, 32, 0, 1},
      {128, 32, 32, 0, 1},  {64, 32, 64, 0, 0},  {128, 32, 64, 0, 0}, {64, 32, 64, 1, 1},   {64, 32, 128, 1, 1},
      {32, 32, 64, 1, 1},   {32, 32, 32, 0, 0},  {64, 64, 64, 0, 0},  {64, 128, 64, 0, 0},  {128, 128, 64, 0, 0},
      {128, 64, 128, 0, 0}, {128, 64, 64, 1, 1}, {96, 96, 96, 0, 0},  {64, 96, 48, 0, 0},   {128, 128, 128, 0, 0},
      {64, 48, 48, 0, 0},   {64, 16, 16, 0, 0},  {64, 64, 784, 0, 0}, {128, 64, 784, 0, 0}, {64, 784, 64, 0, 0},
      {784, 64, 64, 1, 1},  {64, 10, 64, 0, 0},  {64, 4, 32, 0, 0},   {64, 33, 33, 0, 0},   {64, 70, 70, 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const int m = rows[i].m;
    const int n = rows[i].n;
    const int kk = rows[i].k;
    const int t = rows[i].transposed;
    void *A = filled(k->dtype, (int64_t)m * kk);
    void *B = filled(k->dtype, (int64_t)kk * n);
    void *C = filled(k->dtype, (int64_t)m * n);
    double s;
    BEST(s, 0.02, 20, k->gemm(m, n, kk, A, t ? 1 : kk, t ? m : 1, B, n, rows[i].add ? C : NULL, n, NULL, C, n));
    printf("gemm %4d x %4d x %4d %s %s %7.1f GF/s  %.2f\n", m, n, kk, t ? "A^T" : "A  ", rows[i].add ? "+=" : "= ",
           2e-9 * m * n * kk / s, 2e-9 * m * n * kk / s / pk);
    ph_mem_free(A);
    ph_mem_free(B);
    ph_mem_free(C);
  }
}

static void bench_inverse(const ph_kern *k, double pk) {
  for (int d = 16; d <= 128; d *= 2) {
    for (int refine = 0; refine < 2; refine++) {
      const int64_t count = 8;
      const int64_t dd = (int64_t)d * d;
      void *K = ph_mem_new((size_t)(count * dd), 8);
      void *X = ph_mem_new((size_t)(count * dd), 8);
      void *w = ph_mem_new((size_t)PH_INV_SCRATCH(d), 8);
      void *S = filled(k->dtype, count * dd);
      k->skew(count, d, S, dd, K, dd);
      for (int64_t i = 0; i < count * d; i++) {
        const int64_t e = i / d * dd + i % d * (d + 1);
        if (k->dtype == PH_F64) {
          ((double *)K)[e] = 1;
        } else {
          ((float *)K)[e] = 1;
        }
      }
      double s;
      double copy;
      BEST(s, 0.03, 1, k->axpby(count, dd, 1, K, dd, 0, NULL, 0, X, dd); k->inverse(count, d, X, dd, refine, NULL, w));
      BEST(copy, 0.01, 1, k->axpby(count, dd, 1, K, dd, 0, NULL, 0, X, dd));
      const double flops = (refine ? 6.0 : 2.0) * d * (double)dd * (double)count;
      printf("inverse d=%-4d%s %7.2f us each  %.2f\n", d, refine ? " refined" : "        ",
             1e6 * (s - copy) / (double)count, 1e-9 * flops / (s - copy) / pk);
      ph_mem_free(K);
      ph_mem_free(X);
      ph_mem_free(w);
      ph_mem_free(S);
    }
  }
}

static void bench_elements(const ph_kern *k) {
  enum { N = 64 * 64 };
  void *x = filled(k->dtype, N);
  void *y = filled(k->dtype, N);
  void *g = filled(k->dtype, N);
  void *o = filled(k->dtype, N);
  const ph_adam adam = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .c1 = 1, .c2 = 1};
  double s;
  double b;
  double stat[256];
  double loss[64];
  int32_t label[64] = {0};
  int32_t hit[64];
  for (int f = 0; f < PH_ACT_COUNT; f++) {
    BEST(s, 0.01, 10, k->act((ph_act)f, 1, N, x, N, y, N));
    BEST(b, 0.01, 10, k->act_bwd((ph_act)f, 1, N, x, N, y, N, g, N, o, N, 0));
    printf("%-9s %.3f ns forward  %.3f ns backward\n", ph_act_name((ph_act)f), 1e9 * s / N, 1e9 * b / N);
  }
#define ROW(text, call)    \
  BEST(s, 0.01, 10, call); \
  printf("%-24s %.3f ns an element\n", text, 1e9 * s / N)
  ROW("axpby", k->axpby(64, 64, 1, x, 64, 0.1, y, 64, o, 64));
  ROW("colsum 64", k->colsum(64, 64, x, 64, o, 1));
  ROW("transpose 64 x 64", k->transpose(64, 64, x, 64, o, 64));
  ROW("transpose 32 x 32", k->transpose(32, 32, x, 32, o, 32); k->transpose(32, 32, x, 32, o, 32);
      k->transpose(32, 32, x, 32, o, 32); k->transpose(32, 32, x, 32, o, 32));
  ROW("skew 4 of 32 x 32", k->skew(4, 32, x, 1024, o, 1024));
  ROW("layernorm 128 x 32", k->layernorm(128, 32, 1e-5, x, 32, g, y, o, 32, stat));
  ROW("layernorm_bwd 128 x 32", k->layernorm_bwd(128, 32, x, 32, y, stat, g, 32, o, 32, 0, y, y, 1));
  ROW("layernorm 64 x 64", k->layernorm(64, 64, 1e-5, x, 64, g, y, o, 64, stat));
  ROW("layernorm_bwd 64 x 64", k->layernorm_bwd(64, 64, x, 64, y, stat, g, 64, o, 64, 0, y, y, 1));
  ROW("softmax_ce 64 x 64", k->softmax_ce(64, 64, x, 64, label, 0, NULL, 1, loss, hit, o, 64));
  ROW("rownorm 64 x 64", k->rownorm(64, 64, x, 64, loss));
  ROW("sumsq", stat[0] = k->sumsq(N, x));
  ROW("dot", stat[0] = k->dot(N, x, o));
  ROW("first_nonfinite", hit[0] = (int32_t)k->first_nonfinite(N, x));
  ROW("adam", k->adam(N, o, x, g, y, &adam));
  ph_mem_free(x);
  ph_mem_free(y);
  ph_mem_free(g);
  ph_mem_free(o);
}

int main(int argc, char **argv) {
  for (ph_dtype t = PH_F32; t <= PH_F64; t++) {
    const ph_kern *k = argc > 1 ? ph_kern_find(t, argv[1]) : ph_kern_get(t);
    if (!k) {
      fprintf(stderr, "%s: no such kernels here\n", argv[1]);
      return 2;
    }
    const double pk = peak(k->name) / (t == PH_F64 ? 2 : 1);
    printf("%s %s, %d lanes: multiply-add peak %.1f GF/s\n", k->name, ph_dtype_name(t), k->lanes, pk);
    bench_gemm(k, pk);
    bench_inverse(k, pk);
    bench_elements(k);
  }
  return 0;
}
