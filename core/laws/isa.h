/* isa.h - the instruction sets of this build as a list, and the choice that fits the kernel table in use. */
#ifndef PH_LAWS_ISA_H
#define PH_LAWS_ISA_H

#include <string.h>

#include "kernels/kern.h"

#define PH_LAWS_ISA(X) PH_LAWS_ISA_PORTABLE(X) PH_LAWS_ISA_AVX2(X) PH_LAWS_ISA_AVX512(X) PH_LAWS_ISA_NEON(X)
#define PH_LAWS_ISA_PORTABLE(X) X(portable)
#ifdef PH_HAVE_AVX2
#define PH_LAWS_ISA_AVX2(X) X(avx2)
#else
#define PH_LAWS_ISA_AVX2(X)
#endif
#ifdef PH_HAVE_AVX512
#define PH_LAWS_ISA_AVX512(X) X(avx512)
#else
#define PH_LAWS_ISA_AVX512(X)
#endif
#ifdef PH_HAVE_NEON
#define PH_LAWS_ISA_NEON(X) X(neon)
#else
#define PH_LAWS_ISA_NEON(X)
#endif

/* In a function that returns the kernel `prefix`_isa: one line an instruction set, the portable one when none fits. */
#define PH_LAWS_CHOOSE(prefix, isa)                   \
  if (strcmp(ph_kern_get(PH_F64)->name, #isa) == 0) { \
    return prefix##isa;                               \
  }

#endif
