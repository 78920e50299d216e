/* kern_tables.h - the tables that isa_body.c exports; which of them exist depends on the build. */
#ifndef PH_KERNELS_KERN_TABLES_H
#define PH_KERNELS_KERN_TABLES_H

#include "kernels/kern.h"

extern const ph_kern ph_kern_portable_f32;
extern const ph_kern ph_kern_portable_f64;
extern const ph_kern ph_kern_avx2_f32;
extern const ph_kern ph_kern_avx2_f64;
extern const ph_kern ph_kern_avx512_f32;
extern const ph_kern ph_kern_avx512_f64;
extern const ph_kern ph_kern_neon_f32;
extern const ph_kern ph_kern_neon_f64;

#endif
