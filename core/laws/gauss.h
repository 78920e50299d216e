/* gauss.h - normal numbers in bulk: the stream of ph_rng_normal (base/rng.h), eight pairs at a time.
 *
 * The same IEEE operations in the same order as the scalar code, compiled without contraction, so the bits are those of
 * ph_rng_normal on every instruction set; only the speed differs. The instruction set is the one of the kernel table in use.
 */
#ifndef PH_LAWS_GAUSS_H
#define PH_LAWS_GAUSS_H

#include <stdint.h>

#include "base/rng.h"

/* x [OUT] (n) float64: number first+i of the stream times `scale`, for i in [0, n). n = 0 does nothing. */
void ph_laws_gauss(ph_rng rng, uint64_t first, double scale, int64_t n, double *x);

/* x [OUT] (2 * pairs, 8) float64: lane l of row i is number 2 (pair + l stride) + i of the stream times `scale`: the same numbers for eight
 * streams side by side. */
void ph_laws_gauss8(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x);

/* The bare kernels of one instruction set; x [OUT] (16 * blocks), `pair` is first/2. */
typedef void ph_laws_gauss_fn(ph_rng rng, uint64_t pair, double scale, int64_t blocks, double *x);
typedef void ph_laws_gauss8_fn(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x);

#endif
