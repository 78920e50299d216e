/* la_start.c - which BLAS it is, and the check that it computes: products of odd sizes against a plain loop. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/la.h"
#include "base/la_lib.h"
#include "base/mem.h"

enum { PROBE_MAX = 67 };

/* Numbers in [-1, 1] without a pattern that a wrong kernel could respect. */
static double probe_value(uint32_t i) { return (double)((i * 2654435761u) >> 8) * 0x1p-23 - 1; }

/* Worst |got - want| / sum |a b| of one product in both types, every element, transposed or not. */
static double probe(bool ta, bool tb, int m, int n, int k, bool single) {
  static double A[PROBE_MAX * PROBE_MAX];
  static double B[PROBE_MAX * PROBE_MAX];
  static double C[PROBE_MAX * PROBE_MAX];
  static float Af[PROBE_MAX * PROBE_MAX];
  static float Bf[PROBE_MAX * PROBE_MAX];
  static float Cf[PROBE_MAX * PROBE_MAX];
  for (int i = 0; i < m * k; i++) {
    A[i] = Af[i] = (float)probe_value((uint32_t)i);
  }
  for (int i = 0; i < k * n; i++) {
    B[i] = Bf[i] = (float)probe_value((uint32_t)i + 77777);
  }
  if (single) {
    ph_la_lib_get()->cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k,
                                 1, Af, ta ? m : k, Bf, tb ? k : n, 0, Cf, n);
  } else {
    ph_la_gemm(ta, tb, m, n, k, A, B, C);
  }
  double worst = 0;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double want = 0;
      double size = 0;
      double got = single ? Cf[i * n + j] : C[i * n + j];
      for (int p = 0; p < k; p++) {
        double term = A[ta ? p * m + i : i * k + p] * B[tb ? j * k + p : p * n + j];
        want += term;
        size += fabs(term);
      }
      double error = fabs(got - want) / size;
      if (!(error <= worst)) { /* NaN counts */
        worst = error;
      }
    }
  }
  return worst;
}

static double worst_probe(bool single) {
  static const int sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {17, 31, 33}, {32, 32, 32}, {64, 64, 64}, {67, 65, 63}};
  double worst = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (int t = 0; t < 4; t++) {
      double error = probe(t & 1, t & 2, sizes[s][0], sizes[s][1], sizes[s][2], single);
      if (!(error <= worst)) {
        worst = error;
      }
    }
  }
  return worst;
}

const char *ph_la_wanted_core(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return __builtin_cpu_supports("avx512bf16") ? "Cooperlake" : "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return "Haswell";
  }
#endif
  return "";
}

/* Cores whose kernels are as wide as the wanted one's: nothing to gain by asking for another. */
static bool core_fits(const char *core, const char *wanted) {
  static const char *const wide[] = {"Cooperlake", "SapphireRapids", "SkylakeX"};
  static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
  if (!wanted[0] || !strcasecmp(core, wanted)) {
    return true;
  }
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
    if (!strcasecmp(core, wide[i])) {
      return strcasecmp(core, "SkylakeX") || strcasecmp(wanted, "Cooperlake");
    }
  }
  for (size_t i = 0; i < sizeof avx2 / sizeof avx2[0]; i++) {
    if (!strcasecmp(core, avx2[i])) {
      return !strcasecmp(wanted, "Haswell");
    }
  }
  return false;
}

ph_status ph_la_start(ph_la_info *out, ph_err *err) {
  ph_status st = ph_la_lib_load(err);
  if (st) {
    return st;
  }
  const ph_la_lib *lib = ph_la_lib_get();
  const char *wanted = ph_la_wanted_core();
  lib->openblas_set_num_threads(1);
  snprintf(out->config, sizeof out->config, "%s", lib->openblas_get_config());
  snprintf(out->core, sizeof out->core, "%s", lib->openblas_get_corename());
  snprintf(out->wanted, sizeof out->wanted, "%s", core_fits(out->core, wanted) ? "" : wanted);
  out->origin = getenv("OPENBLAS_CORETYPE") ? "user" : wanted[0] ? "host" : "library";
  out->threads = lib->openblas_get_num_threads();
  double single = worst_probe(true);
  double twice = worst_probe(false);
  out->selftest = fmax(single, twice);
  out->ok = single <= 1e-5 && twice <= 1e-12;
  return PH_OK;
}

double ph_la_sgemm_rate(int n, double seconds) {
  size_t nn = n > 0 ? (size_t)n * (size_t)n : 0;
  float *M = nn > 0 ? ph_mem_new(3 * nn, sizeof *M) : NULL;
  if (!M) {
    return 0;
  }
  float *A = M;
  float *B = M + nn;
  float *C = B + nn;
  for (size_t k = 0; k < 2 * nn; k++) {
    M[k] = (float)probe_value((uint32_t)k);
  }
  double best = 0;
  double flops = 2.0 * n * n * n;
  double end = ph_clock() + seconds;
  int batch = 1 + (int)(1e7 / flops); /* the clock's resolution must not count */
  do {
    double t = ph_clock();
    for (int r = 0; r < batch; r++) {
      ph_la_lib_get()->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, A, n, B, n, 0, C, n);
    }
    best = fmax(best, batch * flops / (ph_clock() - t));
  } while (ph_clock() < end);
  ph_mem_free(M);
  return best * 1e-9;
}
