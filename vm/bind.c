/* bind.c - errors, handles and metatables shared by all bindings. */
#include "bind.h"

#include <stdarg.h>

#include "base/mem.h"

#define BLOCK "ph.block"

int ph_raise(lua_State *L, const ph_err *err) {
  lua_pushstring(L, err->code == PH_E_INTERRUPTED ? "interrupted" : err->text);
  lua_error(L);
  __builtin_unreachable();
}

int ph_soft(lua_State *L, const ph_err *err) {
  lua_pushnil(L);
  lua_pushstring(L, err->code == PH_E_INTERRUPTED ? "interrupted" : err->text);
  lua_pushstring(L, ph_status_name(err->code));
  return 3;
}

int ph_fail(lua_State *L, const char *fmt, ...) {
  char line[PH_ERR_TEXT];
  va_list args;
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  lua_pushstring(L, line);
  lua_error(L);
  __builtin_unreachable();
}

static int live[PH_LIVE_COUNT];

void ph_live_add(ph_live kind, int delta) { live[kind] += delta; }

int ph_live_get(ph_live kind) { return live[kind]; }

const char *ph_live_name(ph_live kind) {
  static const char *const names[PH_LIVE_COUNT] = {"tensor", "plan", "data", "reader", "lock"};
  return names[kind];
}

void ph_metatable(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta, lua_CFunction close) {
  if (!luaL_newmetatable(L, name)) {
    lua_pop(L, 1);
    return;
  }
  if (meta) {
    luaL_setfuncs(L, meta, 0);
  }
  lua_pushcfunction(L, close);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, close);
  lua_setfield(L, -2, "__close");
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_pushcfunction(L, close);
  lua_setfield(L, -2, "close");
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

static int l_block_close(lua_State *L) {
  ph_block_free(luaL_checkudata(L, 1, BLOCK));
  return 0;
}

void **ph_push_block(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  void **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  ph_metatable(L, BLOCK, none, NULL, l_block_close);
  luaL_setmetatable(L, BLOCK);
  return slot;
}

void ph_block_free(void **slot) {
  ph_mem_free(*slot);
  *slot = NULL;
}
