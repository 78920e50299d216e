/* The twins for float64. */
#define REF_REAL double
#define REF(name) ph_ref_##name##_f64
#define REF_DTYPE PH_F64
#define REF_TABLE ph_ref_f64
#define REF_ABREAST 1
#include "ref_body.h"
