/* pivoted.h - the slow, careful inverse for matrices whose unpivoted elimination would lose too many digits. */
#ifndef PH_IR_PIVOTED_H
#define PH_IR_PIVOTED_H

#include <stdint.h>

#include "base/tensor.h"

/* K [INOUT] (d,d) f32 or f64: replaced by its inverse. Gauss-Jordan with partial pivoting in long double, plain loops, no
 * library: the same bits on every CPU of one architecture. A singular or non-finite K gives non-finite entries. Up to d = 64 on
 * the stack, above that it allocates (NaN when memory is short). About 2 d^3 scalar flops. */
void ph_inverse_pivoted(ph_dtype dtype, int64_t d, void *K);

#endif
