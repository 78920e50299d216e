/* The twins for float64. */
#define REF_REAL double
#define REF(name) ph_ref_##name##_f64
#include "ref_body.h"
const ph_kern ph_ref_f64 = REF_TABLE(PH_F64);
