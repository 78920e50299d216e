/* tensor.h - a dense row-major array of up to four dimensions that owns its elements. */
#ifndef PH_BASE_TENSOR_H
#define PH_BASE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum ph_dtype { PH_F32 = 0, PH_F64 = 1, PH_I32 = 2, PH_U8 = 3, PH_I64 = 4 } ph_dtype;

enum { PH_RANK_MAX = 4 };

typedef struct ph_tensor {
  ph_dtype dtype;
  int rank;                 /* 0 (a scalar) .. PH_RANK_MAX */
  int64_t dim[PH_RANK_MAX]; /* dim[rank..] are 1 */
  void *data;               /* row-major, 64-byte aligned, owned */
} ph_tensor;

/* Bytes of one element. */
size_t ph_dtype_size(ph_dtype dtype);

/* "f32", "f64", "i32", "u8", "i64". */
const char *ph_dtype_name(ph_dtype dtype);

/* The dtype of a name; false if there is none. */
bool ph_dtype_find(const char *name, ph_dtype *out);

/* Zero-filled tensor. Errors: PH_E_ARG (rank, negative dimension), PH_E_LIMIT (element count overflows), PH_E_NOMEM. */
ph_status ph_tensor_new(ph_tensor **out, ph_dtype dtype, int rank, const int64_t *dim, ph_err *err) PH_MUST_CHECK;
void ph_tensor_free(ph_tensor *t);

ph_status ph_tensor_copy(ph_tensor **out, const ph_tensor *t, ph_err *err) PH_MUST_CHECK;

/* A converted copy (f32 <-> f64, integers -> floats, floats -> integers truncate). PH_E_LIMIT with the 1-based element
 * when an integer type cannot hold a value (NaN and infinities included). */
ph_status ph_tensor_cast(ph_tensor **out, const ph_tensor *t, ph_dtype dtype, ph_err *err) PH_MUST_CHECK;

int64_t ph_tensor_count(const ph_tensor *t);
size_t ph_tensor_bytes(const ph_tensor *t);
bool ph_tensor_same_shape(const ph_tensor *a, const ph_tensor *b);

/* Element i in storage order as a double, and back. i must be in range. Integer elements take the nearest value they can
 * hold after truncation, 0 for NaN. */
double ph_tensor_get(const ph_tensor *t, int64_t i);
void ph_tensor_set(ph_tensor *t, int64_t i, double value);

/* Index of the first NaN or infinity in storage order, -1 if all are finite (always -1 for integers). */
int64_t ph_tensor_first_nonfinite(const ph_tensor *t);

/* "f32 (3, 4)" into buf. Returns buf. */
char *ph_tensor_describe(const ph_tensor *t, char *buf, size_t size);

#endif
