/* The twins for float32. */
#define REF_REAL float
#define REF(name) ph_ref_##name##_f32
#include "ref_body.h"
const ph_kern ph_ref_f32 = REF_TABLE(PH_F32);
