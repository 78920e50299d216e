/* bind_tensor_shape.c - methods that give a tensor another shape, order or element type: always a new tensor. */
#include <string.h>

#include "tensor_box.h"

/* Elements before dimension d (outer), and from the one after it on (inner). */
static int64_t product(const int64_t *dim, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) {
    n *= dim[i];
  }
  return n;
}

static int l_tensor_cast(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  luaL_checkstring(L, 2);
  ph_dtype dtype = ph_opt_dtype(L, 2, t->dtype);
  ph_check_room(L, (double)ph_tensor_count(t) * (double)ph_dtype_size(dtype));
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_tensor_cast(out, t, dtype, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_tensor_copy(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  ph_check_room(L, (double)ph_tensor_bytes(t));
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_tensor_copy(out, t, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_tensor_reshape(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  int64_t dim[PH_RANK_MAX];
  int rank = ph_check_shape(L, 2, dim);
  double wanted = 1;
  for (int i = 0; i < rank; i++) {
    wanted *= (double)dim[i];
  }
  if (wanted != (double)ph_tensor_count(t)) {
    char have[96];
    ph_fail(L, "reshape: %s has %lld elements, the new shape %.17g", ph_tensor_describe(t, have, sizeof have),
            (long long)ph_tensor_count(t), wanted);
  }
  ph_tensor *r = ph_new_tensor(L, t->dtype, rank, dim);
  if (ph_tensor_bytes(t)) {
    memcpy(r->data, t->data, ph_tensor_bytes(t));
  }
  return 1;
}

static int check_dim(lua_State *L, const ph_tensor *t, int arg) {
  lua_Integer d = luaL_checkinteger(L, arg);
  if (d < 1 || d > t->rank) {
    ph_fail(L, "dimension %lld of a tensor of %d dimensions", (long long)d, t->rank);
  }
  return (int)d - 1;
}

static void check_range(lua_State *L, const ph_tensor *t, int d, int64_t first, int64_t last) {
  if (first < 1 || last > t->dim[d] || first > last + 1) {
    ph_fail(L, "range %lld..%lld of dimension %d is outside 1..%lld", (long long)first, (long long)last, d + 1,
            (long long)t->dim[d]);
  }
}

/* Copies rows [first, first + n) of dimension d into r. */
static void copy_range(ph_tensor *r, const ph_tensor *t, int d, int64_t first, int64_t n) {
  size_t size = ph_dtype_size(t->dtype);
  int64_t outer = product(t->dim, 0, d);
  int64_t inner = product(t->dim, d + 1, t->rank);
  size_t chunk = (size_t)(n * inner) * size;
  size_t stride = (size_t)(t->dim[d] * inner) * size;
  const char *from = (const char *)t->data + (size_t)(first * inner) * size;
  if (!chunk) {
    return;
  }
  for (int64_t o = 0; o < outer; o++) {
    memcpy((char *)r->data + (size_t)o * chunk, from + (size_t)o * stride, chunk);
  }
}

static int l_tensor_slice(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  int d = check_dim(L, t, 2);
  int64_t first = luaL_checkinteger(L, 3);
  int64_t last = luaL_optinteger(L, 4, t->dim[d]);
  int64_t dim[PH_RANK_MAX];
  check_range(L, t, d, first, last);
  memcpy(dim, t->dim, sizeof dim);
  dim[d] = last - first + 1;
  copy_range(ph_new_tensor(L, t->dtype, t->rank, dim), t, d, first - 1, dim[d]);
  return 1;
}

static int l_tensor_index(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  int d = check_dim(L, t, 2);
  int64_t i = luaL_checkinteger(L, 3);
  int64_t dim[PH_RANK_MAX] = {1, 1, 1, 1};
  if (i < 1 || i > t->dim[d]) {
    ph_fail(L, "index %lld of dimension %d is outside 1..%lld", (long long)i, d + 1, (long long)t->dim[d]);
  }
  for (int k = 0, to = 0; k < t->rank; k++) {
    if (k != d) {
      dim[to++] = t->dim[k];
    }
  }
  copy_range(ph_new_tensor(L, t->dtype, t->rank - 1, dim), t, d, i - 1, 1);
  return 1;
}

/* The row numbers at `arg` as an i32 tensor on the stack (the argument itself, or made from a list). */
static const ph_tensor *check_rows(lua_State *L, int arg) {
  const ph_tensor *idx = ph_test_tensor(L, arg);
  if (idx) {
    if (idx->dtype != PH_I32 || idx->rank != 1) {
      ph_fail(L, "row numbers must be a list or an i32 tensor of one dimension");
    }
    return idx;
  }
  luaL_checktype(L, arg, LUA_TTABLE);
  int64_t n = (int64_t)lua_rawlen(L, arg);
  ph_tensor *made = ph_new_tensor(L, PH_I32, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    char what[48];
    snprintf(what, sizeof what, "row number [%lld]", (long long)i + 1);
    lua_rawgeti(L, arg, i + 1);
    ph_store_element(L, made, i, -1, what);
    lua_pop(L, 1);
  }
  return made;
}

static int l_tensor_gather(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  if (t->rank == 0) {
    ph_fail(L, "gather: a scalar has no rows");
  }
  const ph_tensor *idx = check_rows(L, 2);
  const int32_t *row = idx->data;
  int64_t n = idx->dim[0];
  int64_t dim[PH_RANK_MAX];
  for (int64_t i = 0; i < n; i++) {
    if (row[i] < 1 || row[i] > t->dim[0]) {
      ph_fail(L, "row number [%lld] = %d is outside 1..%lld", (long long)i + 1, (int)row[i], (long long)t->dim[0]);
    }
  }
  memcpy(dim, t->dim, sizeof dim);
  dim[0] = n;
  ph_tensor *r = ph_new_tensor(L, t->dtype, t->rank, dim);
  size_t chunk = (size_t)product(t->dim, 1, t->rank) * ph_dtype_size(t->dtype);
  for (int64_t i = 0; chunk && i < n; i++) {
    memcpy((char *)r->data + (size_t)i * chunk, (const char *)t->data + (size_t)(row[i] - 1) * chunk, chunk);
  }
  return 1;
}

#define TRANSPOSE(type)                                \
  do {                                                 \
    const type *a = (const type *)t->data + l * m * n; \
    type *b = (type *)r->data + l * m * n;             \
    for (int64_t i = 0; i < m; i++) {                  \
      for (int64_t j = 0; j < n; j++) {                \
        b[j * m + i] = a[i * n + j];                   \
      }                                                \
    }                                                  \
  } while (0)

static int l_tensor_transpose(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  if (t->rank != 2 && t->rank != 3) {
    ph_fail(L, "transpose: the tensor must have 2 or 3 dimensions, got %d", t->rank);
  }
  int64_t dim[PH_RANK_MAX];
  int64_t m = t->dim[t->rank - 2];
  int64_t n = t->dim[t->rank - 1];
  memcpy(dim, t->dim, sizeof dim);
  dim[t->rank - 2] = n;
  dim[t->rank - 1] = m;
  ph_tensor *r = ph_new_tensor(L, t->dtype, t->rank, dim);
  int64_t count = t->rank == 3 ? t->dim[0] : 1;
  for (int64_t l = 0; l < count; l++) {
    switch (ph_dtype_size(t->dtype)) {
    case 1: TRANSPOSE(uint8_t); break;
    case 4: TRANSPOSE(uint32_t); break;
    default: TRANSPOSE(uint64_t);
    }
  }
  return 1;
}

const luaL_Reg ph_tensor_shape_methods[] = {{"cast", l_tensor_cast},           {"copy", l_tensor_copy},
                                            {"reshape", l_tensor_reshape},     {"slice", l_tensor_slice},
                                            {"index", l_tensor_index},         {"gather", l_tensor_gather},
                                            {"transpose", l_tensor_transpose}, {NULL, NULL}};
