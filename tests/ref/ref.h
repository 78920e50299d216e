/* ref.h - the slow readable twins of all kernels: plain loops in long double, rounded once at the end.
 *
 * Two tables of the shape of core/kernels/kern.h, so that a test runs a kernel and its twin by the same call. Contracts are
 * those of kern.h; `inverse` pivots and reports a residual of 0.
 */
#ifndef PH_REF_H
#define PH_REF_H

#include "kernels/kern.h"

extern const ph_kern ph_ref_f32;
extern const ph_kern ph_ref_f64;

static inline const ph_kern *ph_ref_get(ph_dtype dtype) { return dtype == PH_F64 ? &ph_ref_f64 : &ph_ref_f32; }

#endif
