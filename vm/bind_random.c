/* bind_random.c - random tensors, permutations and the identity. Numbers are keyed by (seed, name, index): base/rng.h. */
#include <string.h>

#include "base/rng.h"
#include "tensor_box.h"

static ph_dtype check_float_dtype(lua_State *L, int arg) {
  ph_dtype dtype = ph_opt_dtype(L, arg, PH_F64);
  if (dtype != PH_F32 && dtype != PH_F64) {
    ph_fail(L, "the element type must be f32 or f64, got %s", ph_dtype_name(dtype));
  }
  return dtype;
}

/* native.random(kind, seed, name, shape, scale, dtype, first) */
static int l_random(lua_State *L) {
  const char *kind = luaL_checkstring(L, 1);
  bool normal = !strcmp(kind, "normal");
  if (!normal && strcmp(kind, "uniform")) {
    ph_fail(L, "random: no kind is called '%s' (normal uniform)", kind);
  }
  uint64_t seed = (uint64_t)luaL_checkinteger(L, 2);
  ph_rng rng = ph_rng_of(seed, luaL_checkstring(L, 3));
  int64_t dim[PH_RANK_MAX];
  int64_t first = luaL_optinteger(L, 7, 0);
  int rank = ph_check_shape(L, 4, dim);
  double scale = luaL_optnumber(L, 5, 1);
  if (first < 0) {
    ph_fail(L, "random: first number %lld is negative", (long long)first);
  }
  ph_tensor *t = ph_new_tensor(L, check_float_dtype(L, 6), rank, dim);
  if (normal) {
    ph_rng_fill_normal(rng, (uint64_t)first, scale, t);
  } else {
    ph_rng_fill_uniform(rng, (uint64_t)first, scale, t);
  }
  return 1;
}

static int l_permutation(lua_State *L) {
  ph_rng rng = ph_rng_of((uint64_t)luaL_checkinteger(L, 1), luaL_checkstring(L, 2));
  lua_Integer first = luaL_checkinteger(L, 3);
  lua_Integer n = luaL_checkinteger(L, 4);
  if (first < 0 || n < 0 || n > INT32_MAX) {
    ph_fail(L, "permutation: the first number must be at least 0 and the count 0 to %d, got %lld and %lld", INT32_MAX,
            (long long)first, (long long)n);
  }
  int64_t dim = n;
  ph_tensor *t = ph_new_tensor(L, PH_I32, 1, &dim);
  int32_t *p = t->data;
  ph_rng_permutation(rng, (uint64_t)first, p, n);
  for (int64_t i = 0; i < n; i++) {
    p[i]++;
  }
  return 1;
}

static int l_eye(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  if (n < 0) {
    ph_fail(L, "eye: size %lld is negative", (long long)n);
  }
  int64_t dim[2] = {n, n};
  ph_tensor *t = ph_new_tensor(L, ph_opt_dtype(L, 2, PH_F64), 2, dim);
  for (int64_t i = 0; i < n; i++) {
    ph_tensor_set(t, i * n + i, 1);
  }
  return 1;
}

const luaL_Reg ph_random_functions[] = {
    {"random", l_random}, {"permutation", l_permutation}, {"eye", l_eye}, {NULL, NULL}};
