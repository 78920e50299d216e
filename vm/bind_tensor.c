/* bind_tensor.c - tensors as Lua values: creation, conversion from and to bytes, single elements.
 *
 * Indices in Lua count from 1. A tensor is a userdata `ph.tensor` that owns one ph_tensor; a closed one holds NULL. */
#include "tensor_box.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "host.h"

typedef struct box {
  ph_tensor *t;
  bool counted;
} box;

static int l_tensor_close(lua_State *L) {
  box *b = luaL_checkudata(L, 1, PH_TENSOR);
  ph_tensor_free(b->t);
  if (b->counted) {
    ph_live_add(PH_LIVE_TENSOR, -1);
  }
  b->t = NULL;
  b->counted = false;
  return 0;
}

ph_tensor **ph_push_tensor(lua_State *L) {
  box *b = lua_newuserdatauv(L, sizeof *b, 0);
  b->t = NULL;
  b->counted = false;
  luaL_setmetatable(L, PH_TENSOR);
  return &b->t;
}

/* Small tensors are added up first: a collector step for each would cost more than the tensor. */
static void step_collector(lua_State *L, size_t bytes) {
  static size_t owed;
  owed += bytes + sizeof(ph_tensor);
  if (owed < 65536) {
    return;
  }
  int kib = (int)(owed >> 10 > 1 << 20 ? 1 << 20 : owed >> 10);
  owed = 0;
  lua_gc(L, LUA_GCSTEP, kib);
}

int ph_tensor_ready(lua_State *L, int n) {
  size_t bytes = 0;
  for (int i = 1; i <= n; i++) {
    box *b = luaL_testudata(L, -i, PH_TENSOR);
    if (!b || !b->t || b->counted) {
      continue;
    }
    b->counted = true;
    ph_live_add(PH_LIVE_TENSOR, 1);
    bytes += ph_tensor_bytes(b->t);
  }
  if (bytes) {
    step_collector(L, bytes);
  }
  return n;
}

ph_tensor *ph_test_tensor(lua_State *L, int arg) {
  box *b = luaL_testudata(L, arg, PH_TENSOR);
  if (!b) {
    return NULL;
  }
  if (!b->t) {
    ph_fail(L, "tensor is closed");
  }
  return b->t;
}

ph_tensor *ph_check_tensor(lua_State *L, int arg) {
  ph_tensor *t = ph_test_tensor(L, arg);
  if (!t) {
    luaL_typeerror(L, arg, "tensor");
  }
  return t;
}

int ph_check_shape(lua_State *L, int arg, int64_t dim[PH_RANK_MAX]) {
  luaL_checktype(L, arg, LUA_TTABLE);
  lua_Unsigned n = lua_rawlen(L, arg);
  if (n > PH_RANK_MAX) {
    ph_fail(L, "shape must have at most %d dimensions, got %d", PH_RANK_MAX, (int)n);
  }
  lua_Unsigned keys = 0;
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
    keys++;
  }
  if (keys != n) {
    ph_fail(L, "shape must be a plain list of sizes");
  }
  for (int i = 0; i < (int)n; i++) {
    int ok;
    lua_rawgeti(L, arg, i + 1);
    dim[i] = lua_tointegerx(L, -1, &ok);
    if (!ok || lua_type(L, -1) != LUA_TNUMBER || dim[i] < 0) {
      ph_fail(L, "shape[%d] is %s, not a size", i + 1, luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
  }
  for (int i = (int)n; i < PH_RANK_MAX; i++) {
    dim[i] = 1;
  }
  return (int)n;
}

ph_dtype ph_opt_dtype(lua_State *L, int arg, ph_dtype def) {
  if (lua_isnoneornil(L, arg)) {
    return def;
  }
  const char *name = luaL_checkstring(L, arg);
  ph_dtype d = def;
  if (!ph_dtype_find(name, &d)) {
    ph_fail(L, "no element type is called '%s' (f32 f64 i32 u8 i64)", name);
  }
  return d;
}

void ph_check_room(lua_State *L, double bytes) {
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  double room = ph_limit_room();
  if (bytes > memory) {
    ph_fail(L, "a tensor of %.3g GB is more than this machine's memory (%.3g GB)", bytes / 1e9, memory / 1e9);
  }
  if (room >= 0 && bytes > room) {
    ph_fail(L, "a tensor of %.3g MB is more than the %.3g MB left to this spec", bytes / 1e6, room / 1e6);
  }
}

ph_tensor *ph_new_tensor(lua_State *L, ph_dtype dtype, int rank, const int64_t *dim) {
  double bytes = (double)ph_dtype_size(dtype);
  for (int i = 0; i < rank; i++) {
    bytes *= (double)dim[i];
  }
  ph_check_room(L, bytes);
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_tensor_new(out, dtype, rank, dim, &err)) {
    ph_raise(L, &err);
  }
  ph_tensor_ready(L, 1);
  return *out;
}

/* ---- elements ---- */

void ph_push_element(lua_State *L, const ph_tensor *t, int64_t i) {
  switch (t->dtype) {
  case PH_I64: lua_pushinteger(L, ((const int64_t *)t->data)[i]); break;
  case PH_I32: lua_pushinteger(L, ((const int32_t *)t->data)[i]); break;
  case PH_U8: lua_pushinteger(L, ((const uint8_t *)t->data)[i]); break;
  default: lua_pushnumber(L, ph_tensor_get(t, i));
  }
}

static bool integer_fits(ph_dtype dtype, lua_Integer v) {
  if (dtype == PH_I32) {
    return v >= INT32_MIN && v <= INT32_MAX;
  }
  if (dtype == PH_U8) {
    return v >= 0 && v <= 255;
  }
  return true;
}

void ph_store_element(lua_State *L, ph_tensor *t, int64_t i, int idx, const char *what) {
  if (lua_type(L, idx) != LUA_TNUMBER) {
    ph_fail(L, "%s is a %s, not a number", what, luaL_typename(L, idx));
  }
  if (t->dtype == PH_F32 || t->dtype == PH_F64) {
    ph_tensor_set(t, i, lua_tonumber(L, idx));
    return;
  }
  int ok;
  lua_Integer v = lua_tointegerx(L, idx, &ok);
  if (!ok || !integer_fits(t->dtype, v)) {
    ph_fail(L, "%s = %s does not fit %s", what, luaL_tolstring(L, idx, NULL), ph_dtype_name(t->dtype));
  }
  if (t->dtype == PH_I64) {
    ((int64_t *)t->data)[i] = v;
  } else {
    ph_tensor_set(t, i, (double)v);
  }
}

/* The storage index named by the arguments from `arg` on. */
static int64_t check_index(lua_State *L, const ph_tensor *t, int arg) {
  int given = lua_gettop(L) - arg + 1;
  if (given != t->rank) {
    ph_fail(L, "%d indices for a tensor of %d dimensions", given, t->rank);
  }
  int64_t k = 0;
  for (int i = 0; i < t->rank; i++) {
    lua_Integer v = luaL_checkinteger(L, arg + i);
    if (v < 1 || v > t->dim[i]) {
      ph_fail(L, "index %lld of dimension %d is outside 1..%lld", (long long)v, i + 1, (long long)t->dim[i]);
    }
    k = k * t->dim[i] + (v - 1);
  }
  return k;
}

static int l_tensor_at(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  ph_push_element(L, t, check_index(L, t, 2));
  return 1;
}

static int l_tensor_put(lua_State *L) {
  ph_tensor *t = ph_check_tensor(L, 1);
  luaL_checkany(L, 2);
  ph_store_element(L, t, check_index(L, t, 3), 2, "value");
  lua_settop(L, 1);
  return 1;
}

/* ---- whole tensors ---- */

static int l_tensor(lua_State *L) {
  int64_t dim[PH_RANK_MAX];
  int rank = ph_check_shape(L, 1, dim);
  ph_new_tensor(L, ph_opt_dtype(L, 2, PH_F64), rank, dim);
  return 1;
}

static int l_from_bytes(lua_State *L) {
  size_t n;
  const char *bytes = luaL_checklstring(L, 1, &n);
  int64_t dim[PH_RANK_MAX];
  int rank = ph_check_shape(L, 2, dim);
  ph_tensor *t = ph_new_tensor(L, ph_opt_dtype(L, 3, PH_F64), rank, dim);
  if (n != ph_tensor_bytes(t)) {
    return ph_fail(L, "from_bytes: %zu bytes given, the shape takes %zu", n, ph_tensor_bytes(t));
  }
  if (n) {
    memcpy(t->data, bytes, n);
  }
  return 1;
}

static int l_tensor_bytes(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  lua_pushlstring(L, t->data, ph_tensor_bytes(t));
  return 1;
}

static int l_tensor_shape(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  lua_createtable(L, t->rank, 0);
  for (int i = 0; i < t->rank; i++) {
    lua_pushinteger(L, t->dim[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int l_tensor_dtype(lua_State *L) {
  lua_pushstring(L, ph_dtype_name(ph_check_tensor(L, 1)->dtype));
  return 1;
}

static int l_tensor_count(lua_State *L) {
  lua_pushinteger(L, ph_tensor_count(ph_check_tensor(L, 1)));
  return 1;
}

static int l_live(lua_State *L) {
  lua_createtable(L, 0, PH_LIVE_COUNT + 2);
  for (int kind = 0; kind < PH_LIVE_COUNT; kind++) {
    lua_pushinteger(L, ph_live_get(kind));
    lua_setfield(L, -2, ph_live_name(kind));
  }
  ph_mem_stats now = ph_mem_now();
  lua_pushinteger(L, now.bytes);
  lua_setfield(L, -2, "bytes");
  lua_pushinteger(L, now.blocks);
  lua_setfield(L, -2, "blocks");
  return 1;
}

static const luaL_Reg methods[] = {{"at", l_tensor_at},
                                   {"put", l_tensor_put},
                                   {"bytes", l_tensor_bytes},
                                   {"shape", l_tensor_shape},
                                   {"dtype", l_tensor_dtype},
                                   {"count", l_tensor_count},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"tensor", l_tensor}, {"from_bytes", l_from_bytes}, {"live", l_live}, {NULL, NULL}};

void ph_bind_tensor(lua_State *L) {
  ph_metatable(L, PH_TENSOR, methods, ph_tensor_math_meta, l_tensor_close);
  luaL_getmetatable(L, PH_TENSOR);
  lua_pushcfunction(L, l_tensor_tostring);
  lua_setfield(L, -2, "__tostring");
  lua_getfield(L, -1, "__index");
  luaL_setfuncs(L, ph_tensor_shape_methods, 0);
  luaL_setfuncs(L, ph_tensor_list_methods, 0);
  luaL_setfuncs(L, ph_tensor_math_methods, 0);
  lua_pop(L, 2);
  luaL_setfuncs(L, functions, 0);
  luaL_setfuncs(L, ph_tensor_list_functions, 0);
  luaL_setfuncs(L, ph_random_functions, 0);
}
