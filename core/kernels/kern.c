/* kern.c - which table this process uses, and what it can do. */
#include "kernels/kern.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kern_tables.h"

#if defined(__x86_64__)
static int cpu_has_v3(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static int cpu_has_v4(void) {
  return cpu_has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static int cpu_always(void) { return 1; }

/* Best first. */
static const struct {
  const ph_kern *table[2]; /* by dtype */
  int (*runs)(void);
} tables[] = {
#if defined(PH_HAVE_AVX512)
    {{&ph_kern_avx512_f32, &ph_kern_avx512_f64}, cpu_has_v4},
#endif
#if defined(PH_HAVE_AVX2)
    {{&ph_kern_avx2_f32, &ph_kern_avx2_f64}, cpu_has_v3},
#endif
#if defined(PH_HAVE_NEON)
    {{&ph_kern_neon_f32, &ph_kern_neon_f64}, cpu_always},
#endif
    {{&ph_kern_portable_f32, &ph_kern_portable_f64}, cpu_always},
};

enum { TABLES = sizeof tables / sizeof tables[0] };

const ph_kern *ph_kern_find(ph_dtype dtype, const char *name) {
  assert(dtype == PH_F32 || dtype == PH_F64);
  for (int i = 0; i < TABLES; i++) {
    const ph_kern *t = tables[i].table[dtype];
    if (strcmp(t->name, name) == 0) {
      return tables[i].runs() ? t : NULL;
    }
  }
  return NULL;
}

static int best(void) {
  int i = 0;
  while (!tables[i].runs()) {
    i++;
  }
  return i;
}

/* A name that is unknown here gets one line on stderr and the best table: the choice is also part of every record. */
static int choose(void) {
  const char *want = getenv("PHRUN_KERNELS");
  if (!want || !*want) {
    return best();
  }
  for (int i = 0; i < TABLES; i++) {
    if (strcmp(tables[i].table[0]->name, want) == 0 && tables[i].runs()) {
      return i;
    }
  }
  fprintf(stderr, "phrun: PHRUN_KERNELS=%s: this build or this CPU has no such kernels, using %s\n", want,
          tables[best()].table[0]->name);
  return best();
}

const ph_kern *ph_kern_get(ph_dtype dtype) {
  static int chosen = -1;
  assert(dtype == PH_F32 || dtype == PH_F64);
  int i = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (i < 0) {
    i = choose();
    __atomic_store_n(&chosen, i, __ATOMIC_RELAXED);
  }
  return tables[i].table[dtype];
}

/* Best of many short runs: other programs only ever slow one down. */
double ph_kern_peak(ph_dtype dtype, double seconds) {
  enum { M = 48, N = 64, K = 64, REPEAT = 20 };
  static _Alignas(64) double zero[3][K * N];
  const ph_kern *k = ph_kern_get(dtype);
  const double start = ph_clock();
  double rate = 0;
  do {
    const double t = ph_clock();
    for (int i = 0; i < REPEAT; i++) {
      k->gemm(M, N, K, zero[0], K, 1, zero[1], N, NULL, 0, NULL, zero[2], N);
    }
    const double r = 2e-9 * M * N * K * REPEAT / (ph_clock() - t);
    rate = r > rate ? r : rate;
  } while (ph_clock() - start < seconds);
  return rate;
}
