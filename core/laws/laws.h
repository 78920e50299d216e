/* laws.h - random streams by the thousand: the native loops behind the experiments L1, L3 and L5 (docs/laws.md, 9).
 *
 * A stream x_{t+1} = Lam_t C_t x_t + h B_t u_t (docs/laws.md, 1) has its own random layers:
 *   L, B, W (d,d) and u (d) normal, number by number from the counter streams "laws.L", "laws.B", "laws.W", "laws.u",
 *   "laws.x0", "laws.g": matrix of (stream s, layer t) from number (s depth + t) d^2 on; u of (s, t, input i) from
 *   ((s depth + t) inputs + i) d on; start of (s, i) from (s inputs + i) d on. Only the skew part of A acts: A is drawn as its
 *   strict upper triangle, row by row, d(d-1)/2 numbers of "laws.A" from (s depth + t) d(d-1)/2 on, sqrt(2) times as large, so
 *   that S = A - A^T is distributed as for a full A. Any single layer can be drawn again from outside.
 * Streams are independent tasks of a pool; the result has the same bits for any number of threads. The pool's interrupt flag
 * is polled between streams. Errors of all functions: PH_E_ARG, PH_E_NOMEM, PH_E_INTERRUPTED, PH_E_SINGULAR (the twin's
 * inverse maps at h r near 2), PH_E_NONFINITE, PH_E_CONVERGE.
 */
#ifndef PH_LAWS_LAWS_H
#define PH_LAWS_LAWS_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"

typedef struct ph_laws_random {
  uint64_t seed;
  int64_t streams, inputs, depth, width; /* all >= 1; width <= 1024 */
  double step;                           /* h > 0 */
  double transport, damping, port;       /* deviation of the entries of (a full) A, L, B; u and x_0 are N(0, 1) */
  double control;                        /* deviation of the entries of W in the standard stream x + W x */
  double budget;                         /* guard: R is scaled so that h lambda_max(R) <= budget; 0: no guard */
} ph_laws_random;

/* PH_E_ARG with the name of the first field that is out of range. */
ph_status ph_laws_check(const ph_laws_random *c, ph_err *err) PH_MUST_CHECK;

/* Law of conservation, (docs/laws.md, 1.2): the norm of every state beside its ceiling.
 * norm, bound [OUT] (streams * inputs, depth + 1)  ||x_t|| and ||x_0|| + sum_{s<t} h ||B_s u_s||; scaled norms.
 * guarded [OUT, OPTIONAL] layers whose guard acted. 3 d^2 random numbers a layer and
 * about 6 d^3 + 6 d^2 inputs flops; one input and a width that is a multiple of 4 up to 64: eight streams side by side, 2.3 d^3. */
ph_status ph_laws_conserve(const ph_laws_random *c, ph_pool *pool, double *norm, double *bound, int64_t *guarded,
                           ph_err *err) PH_MUST_CHECK;

/* The explicit twin E_{t+1} = (I - S - hR) E_t + h B u of the same streams, with S and hR rebuilt from C and Lam by the inverse
 * Cayley maps (docs/laws.md, 3). norm [OUT] (streams * inputs, depth + 1), inf once entries overflow;
 * roundtrip [OUT] largest |rebuilt - original| entry of S and hR. */
ph_status ph_laws_twin(const ph_laws_random *c, ph_pool *pool, double *norm, double *roundtrip,
                       ph_err *err) PH_MUST_CHECK;

/* The standard stream w_{t+1} = w_t + W_t w_t from the same starts. norm [OUT] (streams * inputs, depth + 1). */
ph_status ph_laws_control(const ph_laws_random *c, ph_pool *pool, double *norm, ph_err *err) PH_MUST_CHECK;

/* Gradient transport (docs/laws.md, 1.6): g_t = C_t^T Lam_t g_{t+1} of the stream and g_t = g_{t+1} + W_t^T g_{t+1} of the standard one,
 * from the same g_L. ph, standard [OUT] (streams * inputs, depth + 1)  ||g_t||, column 0 is layer 0. */
ph_status ph_laws_gradient(const ph_laws_random *c, ph_pool *pool, double *ph, double *standard,
                           ph_err *err) PH_MUST_CHECK;

/* Singular spectrum of a deep product M_{L-1} ... M_0 by QR accumulation, never by the product itself (docs/laws.md, 12).
 * M [IN] (count, layers, d, d); logs [OUT] (count, d) natural logarithms of the singular values, descending (-inf for 0).
 * One pass gives the diagonal of the accumulated triangle; each further pass works on the transposed triangles and converges to
 * the singular values, by the square of their ratio; stops when no logarithm moves by more than 1e-13 of its size or after `passes`.
 * change [OUT] (count) last move of a logarithm. About 6 layers d^3 flops a pass. M is checked finite. */
ph_status ph_laws_spectrum(int64_t count, int64_t layers, int64_t d, const double *M, int passes, ph_pool *pool,
                           double *logs, double *change, ph_err *err) PH_MUST_CHECK;

#endif
