/* gauss.c - chooses the bulk generator that fits the kernel table in use, and fills the ragged ends one by one. */
#include "laws/gauss.h"

#include "laws/isa.h"

#define DECLARE(isa)                    \
  ph_laws_gauss_fn ph_laws_gauss_##isa; \
  ph_laws_gauss8_fn ph_laws_gauss8_##isa;
PH_LAWS_ISA(DECLARE)

static ph_laws_gauss_fn *kernel(void) {
#define CHOOSE(isa) PH_LAWS_CHOOSE(ph_laws_gauss_, isa)
  PH_LAWS_ISA(CHOOSE)
  return ph_laws_gauss_portable;
}

static ph_laws_gauss8_fn *kernel8(void) {
#define CHOOSE8(isa) PH_LAWS_CHOOSE(ph_laws_gauss8_, isa)
  PH_LAWS_ISA(CHOOSE8)
  return ph_laws_gauss8_portable;
}

void ph_laws_gauss(ph_rng rng, uint64_t first, double scale, int64_t n, double *x) {
  int64_t i = 0;
  for (; i < n && (first + (uint64_t)i) % 2 != 0; i++) {
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  }
  int64_t blocks = (n - i) / 16;
  if (blocks > 0) {
    kernel()(rng, (first + (uint64_t)i) / 2, scale, blocks, x + i);
  }
  for (i += 16 * blocks; i < n; i++) {
    x[i] = scale * ph_rng_normal(rng, first + (uint64_t)i);
  }
}

void ph_laws_gauss8(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x) {
  kernel8()(rng, pair, stride, scale, pairs, x);
}
