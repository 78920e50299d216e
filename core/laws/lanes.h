/* lanes.h - eight streams side by side: element (i, j) of eight matrices is one vector. Used inside core/laws only.
 *
 * For one input a stream the two linear systems of a layer are solved outright ((I + S/2) m = x, C x = 2m - x), a third of the work of
 * two inverses; side by side they need no shuffles. d is a multiple of 4. No pivoting: every pivot is >= 1 (docs/laws.md, 12).
 * Layout of all pointers: (.., 8) float64, 64-byte aligned, owned by the caller.
 */
#ifndef PH_LAWS_LANES_H
#define PH_LAWS_LANES_H

#include <stdint.h>

typedef struct ph_laws_lanes {
  /* x (d) <- C x for S = U - U^T, U the strict upper triangle row by row, d(d-1)/2; K (d,d) scratch. 2/3 d^3 flops a lane. */
  void (*transport)(int64_t d, const double *U, double *K, double *x);
  /* R (d,d) = L L^T; trace = ||L||_F^2 = tr R, square = ||R||_F^2 of each lane. d^3 flops. */
  void (*gram)(int64_t d, const double *L, double *R, double trace[8], double square[8]);
  /* x <- Lam x for hR = 2 half R, `half` of each lane; K (d,d) scratch. 2/3 d^3 flops. */
  void (*damp)(int64_t d, const double *R, const double half[8], double *K, double *x);
  /* y (d) = B (d,d) u (d); B comes with h in it. */
  void (*port)(int64_t d, const double *B, const double *u, double *y);
  /* x += y */
  void (*add)(int64_t d, const double *y, double *x);
  /* Scaled Euclidean norms of the lanes of x (d). */
  void (*norm)(int64_t d, const double *x, double out[8]);
} ph_laws_lanes;

/* The table that fits the kernel table in use. */
const ph_laws_lanes *ph_laws_lanes_get(void);

#endif
