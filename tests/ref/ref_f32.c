/* The twins for float32. */
#define REF_REAL float
#define REF(name) ph_ref_##name##_f32
#define REF_DTYPE PH_F32
#define REF_TABLE ph_ref_f32
#define REF_ABREAST 0
#include "ref_body.h"
