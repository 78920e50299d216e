/* bind_tensor_list.c - tensors from nested lists of numbers, and back. */
#include "tensor_box.h"

#include <stdio.h>

/* "[2][1]" of the first `depth` indices. */
static const char *path_text(const int64_t *at, int depth, char *buf, size_t size) {
  size_t used = 0;
  buf[0] = 0;
  for (int i = 0; i < depth && used + 24 < size; i++) {
    used += (size_t)snprintf(buf + used, size - used, "[%lld]", (long long)at[i]);
  }
  return buf;
}

static void check_plain_list(lua_State *L, int idx, const char *where) {
  lua_Unsigned n = lua_rawlen(L, idx);
  lua_Unsigned keys = 0;
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    keys++;
  }
  if (keys == n) {
    for (lua_Unsigned i = 1; i <= n; i++) {
      if (lua_rawgeti(L, idx, (lua_Integer)i) == LUA_TNIL) {
        ph_fail(L, "list%s has a hole at [%d]", where, (int)i);
      } else {
        lua_pop(L, 1);
      }
    }
    return;
  }
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    if (!lua_isinteger(L, -2)) {
      ph_fail(L, "list%s has a key '%s' that is not an index", where, luaL_tolstring(L, -2, NULL));
    }
  }
  lua_Integer hole = 1;
  while (lua_rawgeti(L, idx, hole) != LUA_TNIL) {
    lua_pop(L, 1);
    hole++;
  }
  ph_fail(L, "list%s has a hole at [%d]", where, (int)hole);
}

/* The shape of nested lists at the top of the stack, from the first element at each depth. */
static int nested_shape(lua_State *L, int64_t dim[PH_RANK_MAX]) {
  int rank = 0;
  int top = lua_gettop(L);
  while (lua_istable(L, -1)) {
    if (rank == PH_RANK_MAX) {
      ph_fail(L, "lists nest deeper than %d dimensions", PH_RANK_MAX);
    }
    dim[rank++] = (int64_t)lua_rawlen(L, -1);
    lua_rawgeti(L, -1, 1);
  }
  lua_settop(L, top);
  return rank;
}

/* Copies the list at the top of the stack, `depth` lists down, into t from element *k on. */
static void fill_nested(lua_State *L, ph_tensor *t, int depth, int64_t at[PH_RANK_MAX], int64_t *k) {
  char where[128];
  if (depth == t->rank) {
    if (lua_type(L, -1) != LUA_TNUMBER) {
      ph_fail(L, "element %s is a %s, not a number", path_text(at, depth, where, sizeof where), luaL_typename(L, -1));
    }
    char what[160];
    snprintf(what, sizeof what, "element %s", path_text(at, depth, where, sizeof where));
    ph_store_element(L, t, (*k)++, -1, what);
    return;
  }
  path_text(at, depth, where, sizeof where);
  if (!lua_istable(L, -1)) {
    ph_fail(L, "element %s is a %s where a list belongs", where, luaL_typename(L, -1));
  }
  check_plain_list(L, lua_gettop(L), where);
  int64_t n = (int64_t)lua_rawlen(L, -1);
  if (n != t->dim[depth]) {
    ph_fail(L, "list%s has %lld elements where others have %lld", where, (long long)n, (long long)t->dim[depth]);
  }
  for (at[depth] = 1; at[depth] <= n; at[depth]++) {
    lua_rawgeti(L, -1, at[depth]);
    fill_nested(L, t, depth + 1, at, k);
    lua_pop(L, 1);
  }
}

static int l_from(lua_State *L) {
  luaL_checkany(L, 1);
  ph_dtype dtype = ph_opt_dtype(L, 2, PH_F64);
  lua_settop(L, 1);
  ph_tensor *given = ph_test_tensor(L, 1);
  if (given) {
    ph_tensor **out = ph_push_tensor(L);
    ph_err err;
    if (ph_tensor_cast(out, given, dtype, &err)) {
      return ph_raise(L, &err);
    }
    return ph_tensor_ready(L, 1);
  }
  if (lua_type(L, 1) != LUA_TNUMBER && !lua_istable(L, 1)) {
    return luaL_typeerror(L, 1, "number, list or tensor");
  }
  if (lua_istable(L, 1)) {
    check_plain_list(L, 1, "");
  }
  int64_t dim[PH_RANK_MAX] = {1, 1, 1, 1};
  int64_t at[PH_RANK_MAX] = {0};
  int64_t k = 0;
  int rank = nested_shape(L, dim);
  ph_tensor *t = ph_new_tensor(L, dtype, rank, dim);
  lua_pushvalue(L, 1);
  fill_nested(L, t, 0, at, &k);
  lua_pop(L, 1);
  return 1;
}

/* Pushes the elements from *k on as lists nested `rank - depth` deep. */
static void push_nested(lua_State *L, const ph_tensor *t, int depth, int64_t *k) {
  if (depth == t->rank) {
    ph_push_element(L, t, (*k)++);
    return;
  }
  lua_createtable(L, (int)t->dim[depth], 0);
  for (int64_t i = 1; i <= t->dim[depth]; i++) {
    push_nested(L, t, depth + 1, k);
    lua_rawseti(L, -2, i);
  }
}

/* Two gigabytes of Lua numbers; labels of the largest task are fewer. */
enum { MOST_IN_LISTS = 1 << 27 };

static int l_tensor_totable(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  int64_t n = ph_tensor_count(t);
  int64_t k = 0;
  if (n > MOST_IN_LISTS) {
    ph_fail(L, "totable: the tensor must have at most %d elements, got %lld", MOST_IN_LISTS, (long long)n);
  }
  luaL_checkstack(L, PH_RANK_MAX + 2, NULL);
  push_nested(L, t, 0, &k);
  return 1;
}

const luaL_Reg ph_tensor_list_functions[] = {{"from", l_from}, {NULL, NULL}};
const luaL_Reg ph_tensor_list_methods[] = {{"totable", l_tensor_totable}, {NULL, NULL}};
