/* tensor.c - shapes, storage and conversion. */
#include "base/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static const struct {
  const char *name;
  size_t size;
} kinds[] = {
    [PH_F32] = {"f32", 4}, [PH_F64] = {"f64", 8}, [PH_I32] = {"i32", 4}, [PH_U8] = {"u8", 1}, [PH_I64] = {"i64", 8}};

enum { NKINDS = sizeof kinds / sizeof kinds[0] };

size_t ph_dtype_size(ph_dtype dtype) { return kinds[dtype].size; }

const char *ph_dtype_name(ph_dtype dtype) { return kinds[dtype].name; }

bool ph_dtype_find(const char *name, ph_dtype *out) {
  for (int k = 0; k < NKINDS; k++) {
    if (!strcmp(name, kinds[k].name)) {
      *out = (ph_dtype)k;
      return true;
    }
  }
  return false;
}

/* Bytes of the elements; false when they do not fit. An empty dimension makes any shape fit, wherever it stands. */
static bool bytes_of(ph_dtype dtype, int rank, const int64_t *dim, int64_t *bytes) {
  *bytes = 0;
  for (int k = 0; k < rank; k++) {
    if (dim[k] == 0) {
      return true;
    }
  }
  int64_t n = (int64_t)ph_dtype_size(dtype);
  for (int k = 0; k < rank; k++) {
    if (__builtin_mul_overflow(n, dim[k], &n)) {
      return false;
    }
  }
  *bytes = n;
  return true;
}

static ph_status check_shape(ph_dtype dtype, int rank, const int64_t *dim, ph_err *err) {
  if ((unsigned)dtype >= NKINDS) {
    return ph_err_set(err, PH_E_ARG, "tensor: no element type %d", (int)dtype);
  }
  if (rank < 0 || rank > PH_RANK_MAX) {
    return ph_err_set(err, PH_E_ARG, "tensor: the rank must be 0 to %d, got %d", PH_RANK_MAX, rank);
  }
  for (int k = 0; k < rank; k++) {
    if (dim[k] < 0) {
      return ph_err_set(err, PH_E_ARG, "tensor: dimension %d is %" PRId64 ", negative", k + 1, dim[k]);
    }
  }
  return PH_OK;
}

ph_status ph_tensor_new(ph_tensor **out, ph_dtype dtype, int rank, const int64_t *dim, ph_err *err) {
  ph_status st = check_shape(dtype, rank, dim, err);
  if (st) {
    return st;
  }
  int64_t bytes;
  if (!bytes_of(dtype, rank, dim, &bytes)) {
    return ph_err_set(err, PH_E_LIMIT, "tensor: too many elements");
  }
  ph_tensor *t = ph_mem_new(1, sizeof *t);
  void *data = t ? ph_mem_new((size_t)bytes, 1) : NULL;
  if (!data) {
    ph_mem_free(t);
    return ph_err_set(err, PH_E_NOMEM, "tensor: no memory for %" PRId64 " bytes", bytes);
  }
  t->dtype = dtype;
  t->rank = rank;
  t->data = data;
  for (int k = 0; k < PH_RANK_MAX; k++) {
    t->dim[k] = k < rank ? dim[k] : 1;
  }
  *out = t;
  return PH_OK;
}

void ph_tensor_free(ph_tensor *t) {
  if (!t) {
    return;
  }
  ph_mem_free(t->data);
  ph_mem_free(t);
}

ph_status ph_tensor_copy(ph_tensor **out, const ph_tensor *t, ph_err *err) {
  ph_status st = ph_tensor_new(out, t->dtype, t->rank, t->dim, err);
  if (st == PH_OK) {
    memcpy((*out)->data, t->data, ph_tensor_bytes(t));
  }
  return st;
}

static bool is_float(ph_dtype dtype) { return dtype == PH_F32 || dtype == PH_F64; }

/* Element i of an integer tensor, exact. */
static int64_t get_int(const ph_tensor *t, int64_t i) {
  switch (t->dtype) {
  case PH_I32: return ((const int32_t *)t->data)[i];
  case PH_U8: return ((const uint8_t *)t->data)[i];
  default: return ((const int64_t *)t->data)[i];
  }
}

/* Range of an integer type. 2^63 is exact in double, 2^63 - 1 is not: the upper bound is exclusive. */
static void int_range(ph_dtype dtype, double *lowest, double *above) {
  *lowest = dtype == PH_U8 ? 0 : dtype == PH_I32 ? -0x1p31 : -0x1p63;
  *above = dtype == PH_U8 ? 0x1p8 : dtype == PH_I32 ? 0x1p31 : 0x1p63;
}

static int64_t clamp_int(ph_dtype dtype, double value) {
  double lowest;
  double above;
  int_range(dtype, &lowest, &above);
  if (!(value > lowest - 1)) { /* NaN too */
    return value == value ? (int64_t)lowest : 0;
  }
  if (value >= above) {
    return dtype == PH_U8 ? UINT8_MAX : dtype == PH_I32 ? INT32_MAX : INT64_MAX;
  }
  return (int64_t)(value < lowest ? lowest : value);
}

static void set_int(ph_tensor *t, int64_t i, int64_t value) {
  switch (t->dtype) {
  case PH_I32: ((int32_t *)t->data)[i] = (int32_t)value; break;
  case PH_U8: ((uint8_t *)t->data)[i] = (uint8_t)value; break;
  default: ((int64_t *)t->data)[i] = value; break;
  }
}

double ph_tensor_get(const ph_tensor *t, int64_t i) {
  switch (t->dtype) {
  case PH_F32: return ((const float *)t->data)[i];
  case PH_F64: return ((const double *)t->data)[i];
  default: return (double)get_int(t, i);
  }
}

void ph_tensor_set(ph_tensor *t, int64_t i, double value) {
  switch (t->dtype) {
  case PH_F32: ((float *)t->data)[i] = (float)value; break;
  case PH_F64: ((double *)t->data)[i] = value; break;
  default: set_int(t, i, clamp_int(t->dtype, value)); break;
  }
}

/* First element that an integer type cannot hold, or -1. */
static int64_t first_misfit(const ph_tensor *t, ph_dtype dtype) {
  double lowest;
  double above;
  int_range(dtype, &lowest, &above);
  int64_t n = ph_tensor_count(t);
  for (int64_t i = 0; i < n; i++) {
    double value = ph_tensor_get(t, i);
    bool whole_range = dtype == PH_I64 && !is_float(t->dtype);
    if (!whole_range && !((value > lowest - 1 || value == lowest) && value < above)) {
      return i;
    }
  }
  return -1;
}

ph_status ph_tensor_cast(ph_tensor **out, const ph_tensor *t, ph_dtype dtype, ph_err *err) {
  if (dtype == t->dtype) {
    return ph_tensor_copy(out, t, err);
  }
  ph_tensor *c = NULL;
  ph_status st = ph_tensor_new(&c, dtype, t->rank, t->dim, err);
  if (st) {
    return st;
  }
  int64_t bad = is_float(dtype) ? -1 : first_misfit(t, dtype);
  if (bad >= 0) {
    st = ph_err_set(err, PH_E_LIMIT, "cast: element %" PRId64 " is %.17g, which %s cannot hold", bad + 1,
                    ph_tensor_get(t, bad), ph_dtype_name(dtype));
    ph_tensor_free(c);
    return st;
  }
  int64_t n = ph_tensor_count(t);
  bool exact = !is_float(t->dtype) && !is_float(dtype);
  for (int64_t i = 0; i < n; i++) {
    if (exact) {
      set_int(c, i, get_int(t, i));
    } else {
      ph_tensor_set(c, i, ph_tensor_get(t, i));
    }
  }
  *out = c;
  return PH_OK;
}

int64_t ph_tensor_count(const ph_tensor *t) {
  int64_t n = 1;
  for (int k = 0; k < PH_RANK_MAX; k++) {
    if (t->dim[k] == 0) {
      return 0;
    }
    n = n > INT64_MAX / t->dim[k] ? INT64_MAX : n * t->dim[k]; /* only beside a 0 that is still to come */
  }
  return n;
}

size_t ph_tensor_bytes(const ph_tensor *t) { return (size_t)ph_tensor_count(t) * ph_dtype_size(t->dtype); }

bool ph_tensor_same_shape(const ph_tensor *a, const ph_tensor *b) {
  return a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim);
}

int64_t ph_tensor_first_nonfinite(const ph_tensor *t) {
  int64_t n = ph_tensor_count(t);
  if (t->dtype == PH_F32) {
    const float *x = t->data;
    for (int64_t i = 0; i < n; i++) {
      if (!__builtin_isfinite(x[i])) {
        return i;
      }
    }
  } else if (t->dtype == PH_F64) {
    const double *x = t->data;
    for (int64_t i = 0; i < n; i++) {
      if (!__builtin_isfinite(x[i])) {
        return i;
      }
    }
  }
  return -1;
}

char *ph_tensor_describe(const ph_tensor *t, char *buf, size_t size) {
  char dims[PH_RANK_MAX * 24] = "";
  size_t used = 0;
  for (int k = 0; k < t->rank; k++) {
    used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%" PRId64, k ? ", " : "", t->dim[k]);
  }
  snprintf(buf, size, "%s (%s)", ph_dtype_name(t->dtype), dims);
  return buf;
}
