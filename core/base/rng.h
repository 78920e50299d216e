/* rng.h - counter-based random numbers: Philox4x32-10 keyed by (seed, name), indexed by position.
 *
 * The i-th number of the stream (seed, name) is a pure function of (seed, name, i): no state, no draw order, the same
 * on every machine and for any number of threads. Normal deviates use our own log, sin and cos (Box-Muller on
 * pairs (2j, 2j+1)) evaluated in double so that the bits do not depend on the C library.
 */
#ifndef PH_BASE_RNG_H
#define PH_BASE_RNG_H

#include <stdint.h>

#include "base/tensor.h"

typedef struct ph_rng {
  uint32_t key[2]; /* mixed from seed and name */
} ph_rng;

/* The stream of a seed and a name (64-bit FNV-1a of the name, mixed with the seed). */
ph_rng ph_rng_of(uint64_t seed, const char *name);

/* Philox4x32-10 of a counter block: out[4]. Known-answer vectors of Random123 are tests. */
void ph_rng_block(ph_rng rng, uint64_t counter, uint32_t out[4]);

/* The bare generator: 128-bit counter and 64-bit key, least significant word first. */
void ph_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t ph_rng_u64(ph_rng rng, uint64_t i);
double ph_rng_uniform(ph_rng rng, uint64_t i); /* in [0, 1), 53 bits */
double ph_rng_normal(ph_rng rng, uint64_t i);  /* N(0, 1) */

/* Element k of `t` becomes number first+k of the stream, scaled: mean 0 and deviation `scale` for normal,
 * in [-scale, scale) for uniform. Rounded once to the element type (PH_F32 or PH_F64). */
void ph_rng_fill_normal(ph_rng rng, uint64_t first, double scale, ph_tensor *t);
void ph_rng_fill_uniform(ph_rng rng, uint64_t first, double scale, ph_tensor *t);

/* Natural logarithm of a normal positive x, within 1 ulp or 1e-16; bits independent of the C library. */
double ph_rng_log(double x);

/* sin and cos of 2 pi u for u in [0, 1], within 2e-16; bits independent of the C library. */
void ph_rng_turn(double u, double *sine, double *cosine);

/* perm[0..n) becomes a uniformly random permutation (Fisher-Yates with rejection, numbers first..). */
void ph_rng_permutation(ph_rng rng, uint64_t first, int32_t *perm, int64_t n);

#endif
