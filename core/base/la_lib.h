/* la_lib.h - OpenBLAS and LAPACKE, loaded while the program runs. Private to core/base/la*.c.
 *
 * OpenBLAS chooses its kernels, starts its threads and takes its buffers while it is being loaded, and asks for memory
 * until it gets it. So it is loaded from here: only where there is room for it, and with an environment that says one thread
 * and the kernels that fit this CPU. The environment is as it was afterwards.
 */
#ifndef PH_BASE_LA_LIB_H
#define PH_BASE_LA_LIB_H

#include <cblas.h>
#include <lapacke.h>

#include "base/status.h"

#define PH_LA_BLAS_CALLS(X)   \
  X(cblas_dgemm)              \
  X(cblas_sgemm)              \
  X(openblas_get_config)      \
  X(openblas_get_corename)    \
  X(openblas_get_num_threads) \
  X(openblas_set_num_threads)

#define PH_LA_LAPACKE_CALLS(X) \
  X(LAPACKE_dgeev)             \
  X(LAPACKE_dgeqrf)            \
  X(LAPACKE_dgesdd)            \
  X(LAPACKE_dgetrf)            \
  X(LAPACKE_dgetri)            \
  X(LAPACKE_dgetrs)            \
  X(LAPACKE_dorgqr)            \
  X(LAPACKE_dpotrf)            \
  X(LAPACKE_dsyevd)            \
  X(LAPACKE_dsygvd)

/* A pointer to each function above, under its own name. */
typedef struct ph_la_lib {
#define X(name) __typeof__(name) *name;
  PH_LA_BLAS_CALLS(X)
  PH_LA_LAPACKE_CALLS(X)
#undef X
} ph_la_lib;

/* Loads both libraries; once they are there, does nothing. Not for two threads at a time.
 * PH_E_NOMEM without room for them, PH_E_NOTFOUND with the loader's reason. */
ph_status ph_la_lib_load(ph_err *err) PH_MUST_CHECK;

/* The loaded functions; asserts that they are loaded. */
const ph_la_lib *ph_la_lib_get(void);

#endif
