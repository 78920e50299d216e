/* gauss.c - chooses the bulk generator that fits the kernel table in use, and fills the ragged ends one by one. */
#include "laws/gauss.h"

#include <string.h>

#include "kernels/kern.h"

#define PH_LAWS_ISA(X) PH_LAWS_ISA_PORTABLE(X) PH_LAWS_ISA_AVX2(X) PH_LAWS_ISA_AVX512(X) PH_LAWS_ISA_NEON(X)
#define PH_LAWS_ISA_PORTABLE(X) X(portable)
#ifdef PH_HAVE_AVX2
#define PH_LAWS_ISA_AVX2(X) X(avx2)
#else
#define PH_LAWS_ISA_AVX2(X)
#endif
#ifdef PH_HAVE_AVX512
#define PH_LAWS_ISA_AVX512(X) X(avx512)
#else
#define PH_LAWS_ISA_AVX512(X)
#endif
#ifdef PH_HAVE_NEON
#define PH_LAWS_ISA_NEON(X) X(neon)
#else
#define PH_LAWS_ISA_NEON(X)
#endif

#define DECLARE(isa) ph_laws_gauss_fn ph_laws_gauss_##isa;
PH_LAWS_ISA(DECLARE)

static ph_laws_gauss_fn *kernel(void) {
  const char *name = ph_kern_get(PH_F64)->name;
#define MATCH(isa)            \
  if (strcmp(name, #isa) == 0) \
    return ph_laws_gauss_##isa;
  PH_LAWS_ISA(MATCH)
  return ph_laws_gauss_portable;
}

void ph_laws_gauss(ph_rng rng, uint64_t first, double scale, int64_t n, double *x) {
  int64_t i = 0;
  for (; i < n && (first + (uint64_t)i) % 2 != 0; i++)
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  int64_t blocks = (n - i) / 16;
  if (blocks > 0)
    kernel()(rng, (first + (uint64_t)i) / 2, scale, blocks, x + i);
  for (i += 16 * blocks; i < n; i++)
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
}
