/* state.c - the Lua state of the program: libraries, `ph.native`, and where modules come from. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "host.h"
#include "kernels/kern.h"

/* Modules are taken from the program's own tree and from Debian's directory of Lua libraries, never from the current directory or
 * from LUA_PATH: a result must not depend on where the program was started. C modules are not searched for at all; only the
 * test runner, which needs some of busted's, sets package.cpath from native.cpath. */
static void set_paths(lua_State *L, const char *lua_dir) {
  lua_getglobal(L, "package");
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua", lua_dir, lua_dir);
  lua_setfield(L, -2, "path");
  lua_pushliteral(L, "");
  lua_setfield(L, -2, "cpath");
  lua_pop(L, 1);
}

static void open_native(lua_State *L, const char *lua_dir) {
  lua_newtable(L);
  ph_bind_tensor(L);
  ph_bind_la(L);
  ph_bind_engine(L);
  ph_bind_laws(L);
  ph_bind_store(L);
  ph_bind_os(L);
  ph_bind_sandbox(L);
  ph_bind_repl(L);
  lua_pushstring(L, lua_dir);
  lua_setfield(L, -2, "lua_dir");
  lua_pushinteger(L, PH_ARITHMETIC);
  lua_setfield(L, -2, "arithmetic");
  lua_pushliteral(L, LUA_CPATH_DEFAULT);
  lua_setfield(L, -2, "cpath");
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "ph.native");
  lua_pop(L, 2);
}

void ph_state_open(lua_State *L, const char *lua_dir) {
  luaL_openlibs(L);
  ph_limit_program(lua_dir);
  set_paths(L, lua_dir);
  open_native(L, lua_dir);
}

static bool has_modules(const char *dir) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/ph/verb/cli.lua", dir);
  return access(path, R_OK) == 0;
}

char *ph_state_lua_dir(const char *exe, char *buf, size_t size) {
  char dir[PATH_MAX];
  char path[PATH_MAX + 64];
  snprintf(dir, sizeof dir, "%s", exe);
  char *slash = strrchr(dir, '/');
  if (slash) {
    *slash = 0;
  }
  snprintf(path, sizeof path, "%s/CMakeCache.txt", dir);
  bool in_build = access(path, R_OK) == 0;
  snprintf(path, sizeof path, "%s/../share/phrun/lua", dir);
  if (in_build) {
    snprintf(buf, size, "%s/lua", PHRUN_SOURCE_DIR);
  } else if (has_modules(path)) {
    snprintf(buf, size, "%s", path);
  } else {
    snprintf(buf, size, "%s/lua", PHRUN_INSTALL_DIR);
  }
  return buf;
}
