/* rng.c - Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) and Box-Muller.
 *
 * The elementary functions are our own because a C library's log differs in the last bit from one version to the next.
 * Only + - * / sqrt of IEEE double are used, compiled without contraction, so the bits are the same everywhere.
 */
#include "base/rng.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Finalizer of SplitMix64: a bijection whose every output bit depends on every input bit. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

ph_rng ph_rng_of(uint64_t seed, const char *name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *name; name++) {
    h = (h ^ (unsigned char)*name) * 0x100000001b3u;
  }
  uint64_t k = mix(mix(h) ^ mix(seed + 0x9e3779b97f4a7c15u));
  return (ph_rng){.key = {(uint32_t)k, (uint32_t)(k >> 32)}};
}

void ph_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0];
  uint32_t c1 = counter[1];
  uint32_t c2 = counter[2];
  uint32_t c3 = counter[3];
  uint32_t k0 = key[0];
  uint32_t k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xd2511f53u * c0;
    uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

void ph_rng_block(ph_rng rng, uint64_t counter, uint32_t out[4]) {
  const uint32_t words[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  ph_rng_philox(words, rng.key, out);
}

/* Numbers 2j and 2j+1 of the stream. */
static void u64_pair(ph_rng rng, uint64_t j, uint64_t u[2]) {
  uint32_t w[4];
  ph_rng_block(rng, j, w);
  u[0] = w[0] | (uint64_t)w[1] << 32;
  u[1] = w[2] | (uint64_t)w[3] << 32;
}

uint64_t ph_rng_u64(ph_rng rng, uint64_t i) {
  uint64_t u[2];
  u64_pair(rng, i / 2, u);
  return u[i % 2];
}

static double unit(uint64_t u) { return (double)(u >> 11) * 0x1p-53; }

double ph_rng_uniform(ph_rng rng, uint64_t i) { return unit(ph_rng_u64(rng, i)); }

double ph_rng_log(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  /* x = 2^k m with m in [sqrt(1/2), sqrt(2)): adding the gap between 1 and sqrt(1/2) carries into the exponent. */
  int64_t k = ((bits + 0x00095f619980c433) >> 52) - 1023;
  bits -= k * 0x0010000000000000;
  double m;
  memcpy(&m, &bits, sizeof m);
  /* ln m = 2 atanh(s) = 2s + 2s (q/3 + q^2/5 + ...), q <= 0.0295 */
  double s = (m - 1) / (m + 1);
  double q = s * s;
  double sum = 0;
  for (int n = 23; n >= 3; n -= 2) {
    sum = q * (1.0 / n + sum);
  }
  const double ln2_hi = 0x1.62e42feep-1; /* k * ln2_hi is exact */
  const double ln2_lo = 0x1.a39ef35793c76p-33;
  return (double)k * ln2_hi + (2 * s + (2 * s * sum + (double)k * ln2_lo));
}

/* sin and cos of 2 pi r for |r| <= 1/8 by their Taylor series: the first term left out is below 1e-18. */
static void sincos_octant(double r, double *sine, double *cosine) {
  double x = 0x1.921fb54442d18p+2 * r;
  double q = x * x;
  double s = 0;
  double c = 0;
  for (int n = 16; n >= 2; n -= 2) {
    s = q * (-1.0 / (n * (n + 1))) * (1 + s); /* a product by a constant: half the time of a division */
    c = q * (-1.0 / (n * (n - 1))) * (1 + c);
  }
  *sine = x + x * s;
  *cosine = 1 + c;
}

void ph_rng_turn(double u, double *sine, double *cosine) {
  int quarter = (int)(4 * u + 0.5);
  double s;
  double c;
  sincos_octant(u - 0.25 * quarter, &s, &c); /* exact difference */
  switch (quarter % 4) {
  case 0:
    *sine = s;
    *cosine = c;
    break;
  case 1:
    *sine = c;
    *cosine = -s;
    break;
  case 2:
    *sine = -s;
    *cosine = -c;
    break;
  default:
    *sine = -c;
    *cosine = s;
    break;
  }
}

static void normal_pair(ph_rng rng, uint64_t j, double z[2]) {
  uint64_t u[2];
  u64_pair(rng, j, u);
  double sine;
  double cosine;
  double radius = __builtin_sqrt(-2 * ph_rng_log(unit(u[0]) + 0x1p-53)); /* of (0, 1] */
  ph_rng_turn(unit(u[1]), &sine, &cosine);
  z[0] = radius * cosine;
  z[1] = radius * sine;
}

double ph_rng_normal(ph_rng rng, uint64_t i) {
  double z[2];
  normal_pair(rng, i / 2, z);
  return z[i % 2];
}

static void put(ph_tensor *t, int64_t k, double value) {
  if (t->dtype == PH_F32) {
    ((float *)t->data)[k] = (float)value;
  } else {
    ((double *)t->data)[k] = value;
  }
}

void ph_rng_fill_normal(ph_rng rng, uint64_t first, double scale, ph_tensor *t) {
  assert(t->dtype == PH_F32 || t->dtype == PH_F64);
  int64_t n = ph_tensor_count(t);
  double z[2] = {0, 0};
  for (int64_t k = 0; k < n; k++) {
    uint64_t i = first + (uint64_t)k;
    if (k == 0 || i % 2 == 0) {
      normal_pair(rng, i / 2, z);
    }
    put(t, k, scale * z[i % 2]);
  }
}

void ph_rng_fill_uniform(ph_rng rng, uint64_t first, double scale, ph_tensor *t) {
  assert(t->dtype == PH_F32 || t->dtype == PH_F64);
  int64_t n = ph_tensor_count(t);
  uint64_t u[2] = {0, 0};
  for (int64_t k = 0; k < n; k++) {
    uint64_t i = first + (uint64_t)k;
    if (k == 0 || i % 2 == 0) {
      u64_pair(rng, i / 2, u);
    }
    put(t, k, scale * (2 * unit(u[i % 2]) - 1));
  }
}

/* Uniform in [0, bound): numbers below 2^64 mod bound are drawn again, so that every value has equally many. */
static uint64_t below(ph_rng rng, uint64_t *next, uint64_t bound) {
  uint64_t surplus = -bound % bound;
  uint64_t u;
  do {
    u = ph_rng_u64(rng, (*next)++);
  } while (u < surplus);
  return u % bound;
}

void ph_rng_permutation(ph_rng rng, uint64_t first, int32_t *perm, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    perm[k] = (int32_t)k;
  }
  for (int64_t k = n - 1; k > 0; k--) {
    int64_t other = (int64_t)below(rng, &first, (uint64_t)k + 1);
    int32_t kept = perm[k];
    perm[k] = perm[other];
    perm[other] = kept;
  }
}
