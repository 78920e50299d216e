/* walk.h - one task of the conservation loop, eight streams wide. Used inside core/laws only. */
#ifndef PH_LAWS_WALK_H
#define PH_LAWS_WALK_H

#include <stdbool.h>

#include "laws/laws.h"

/* Whether streams of this kind can go side by side. */
bool ph_laws_lanes_fit(const ph_laws_random *c);

/* Streams s .. s+7 (as many as there are): rows s.. of norm and bound as in ph_laws_conserve; *guarded grows by the layers scaled. */
ph_status ph_laws_lanes_walk(const ph_laws_random *c, int64_t s, double *norm, double *bound, int64_t *guarded,
                             ph_err *err) PH_MUST_CHECK;

/* The larger of two figures of what went wrong; NaN when one is: fmax would drop it, and nothing would have gone wrong. */
static inline double ph_laws_worse(double a, double b) { return a != a || a > b ? a : b; }

#endif
