/* bind_file.c - files, directories, locks, SHA-256 and IDX data as Lua functions. What they do: core/store/file.h, data/idx.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/idx.h"
#include "store/file.h"
#include "store_box.h"

#define LOCK "ph.lock"

const char *ph_check_path(lua_State *L, int arg) {
  size_t n;
  const char *path = luaL_checklstring(L, arg, &n);
  if (strlen(path) != n) {
    ph_fail(L, "the path '%s' continues after a NUL byte", path);
  }
  return path;
}

static int done(lua_State *L, ph_status status, const ph_err *err) {
  if (status != PH_OK) {
    return ph_soft(L, err);
  }
  lua_pushboolean(L, true);
  return 1;
}

static int l_write_file(lua_State *L) {
  size_t n;
  ph_err err;
  const char *path = ph_check_path(L, 1);
  const char *text = luaL_checklstring(L, 2, &n);
  return done(L, ph_file_write(path, text, n, &err), &err);
}

static int l_append_line(lua_State *L) {
  size_t n;
  ph_err err;
  const char *path = ph_check_path(L, 1);
  const char *text = luaL_checklstring(L, 2, &n);
  return done(L, ph_file_append_line(path, text, n, &err), &err);
}

/* native.read_file(path, limit): limit nil or 0 = none */
static int l_read_file(lua_State *L) {
  size_t n;
  ph_err err;
  const char *path = ph_check_path(L, 1);
  lua_Integer limit = luaL_optinteger(L, 2, 0);
  if (limit < 0) {
    ph_fail(L, "read_file: limit %lld is negative", (long long)limit);
  }
  char **text = (char **)ph_push_block(L);
  if (ph_file_read(path, (size_t)limit, text, &n, &err)) {
    return ph_soft(L, &err);
  }
  lua_pushlstring(L, *text, n);
  ph_block_free((void **)text);
  return 1;
}

static int l_mkdir(lua_State *L) {
  ph_err err;
  return done(L, ph_file_mkdir(ph_check_path(L, 1), &err), &err);
}

/* A new directory of this program alone, under TMPDIR or /tmp. */
static int l_temp_dir(lua_State *L) {
  const char *parent = getenv("TMPDIR");
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/phrun-XXXXXX", parent && parent[0] ? parent : "/tmp");
  if (!mkdtemp(path)) {
    ph_err err;
    (void)ph_err_set(&err, PH_E_IO, "%s: %s", path, strerror(errno));
    return ph_soft(L, &err);
  }
  lua_pushstring(L, path);
  return 1;
}

static int l_remove(lua_State *L) {
  ph_err err;
  return done(L, ph_file_remove(ph_check_path(L, 1), &err), &err);
}

static int l_rename(lua_State *L) {
  ph_err err;
  return done(L, ph_file_rename(ph_check_path(L, 1), ph_check_path(L, 2), &err), &err);
}

static int l_list_dir(lua_State *L) {
  size_t count;
  ph_err err;
  const char *path = ph_check_path(L, 1);
  char **names = (char **)ph_push_block(L);
  if (ph_file_list(path, names, &count, &err)) {
    return ph_soft(L, &err);
  }
  lua_createtable(L, (int)count, 0);
  const char *name = *names;
  for (size_t i = 0; i < count; i++, name += strlen(name) + 1) {
    lua_pushstring(L, name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  ph_block_free((void **)names);
  return 1;
}

static int l_stat(lua_State *L) {
  ph_file_info info;
  ph_err err;
  if (ph_file_stat(ph_check_path(L, 1), &info, &err)) {
    return ph_soft(L, &err);
  }
  lua_createtable(L, 0, 3);
  lua_pushstring(L, info.is_dir ? "dir" : info.is_file ? "file" : "other");
  lua_setfield(L, -2, "kind");
  lua_pushinteger(L, info.size);
  lua_setfield(L, -2, "size");
  lua_pushnumber(L, info.mtime);
  lua_setfield(L, -2, "mtime");
  return 1;
}

static int soft_errno(lua_State *L, const char *what) {
  ph_err err;
  (void)ph_err_set(&err, errno == ENOENT ? PH_E_NOTFOUND : PH_E_IO, "%s: %s", what, strerror(errno));
  return ph_soft(L, &err);
}

static int l_realpath(lua_State *L) {
  char buf[PATH_MAX];
  const char *path = ph_check_path(L, 1);
  if (!realpath(path, buf)) {
    return soft_errno(L, path);
  }
  lua_pushstring(L, buf);
  return 1;
}

static int l_cwd(lua_State *L) {
  char buf[PATH_MAX];
  if (!getcwd(buf, sizeof buf)) {
    return soft_errno(L, "the current directory");
  }
  lua_pushstring(L, buf);
  return 1;
}

static int l_sha256(lua_State *L) {
  size_t n;
  char hex[65];
  const char *text = luaL_checklstring(L, 1, &n);
  ph_sha256(text, n, hex);
  lua_pushlstring(L, hex, 64);
  return 1;
}

static int l_sha256_file(lua_State *L) {
  char hex[65];
  ph_err err;
  if (ph_sha256_file(ph_check_path(L, 1), hex, &err)) {
    return ph_soft(L, &err);
  }
  lua_pushlstring(L, hex, 64);
  return 1;
}

static int l_lock_release(lua_State *L) {
  ph_lock **slot = luaL_checkudata(L, 1, LOCK);
  if (*slot) {
    ph_live_add(PH_LIVE_LOCK, -1);
  }
  ph_lock_release(*slot);
  *slot = NULL;
  return 0;
}

static int l_lock(lua_State *L) {
  ph_err err;
  const char *path = ph_check_path(L, 1);
  ph_lock **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  luaL_setmetatable(L, LOCK);
  if (ph_lock_take(slot, path, &err)) {
    return ph_soft(L, &err);
  }
  ph_live_add(PH_LIVE_LOCK, 1);
  return 1;
}

void ph_bind_lock(lua_State *L) {
  static const luaL_Reg methods[] = {{"release", l_lock_release}, {NULL, NULL}};
  ph_metatable(L, LOCK, methods, NULL, l_lock_release);
}

/* native.idx_read(path, limit) */
static int l_idx_read(lua_State *L) {
  ph_err err;
  const char *path = ph_check_path(L, 1);
  lua_Integer limit = luaL_optinteger(L, 2, 0);
  ph_tensor **t = ph_push_tensor(L);
  if (ph_idx_read(path, limit, t, &err)) {
    return ph_soft(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

/* native.idx_pair(images, labels, classes) -> images, labels */
static int l_idx_pair(lua_State *L) {
  ph_err err;
  const char *images = ph_check_path(L, 1);
  const char *labels = ph_check_path(L, 2);
  lua_Integer classes = luaL_optinteger(L, 3, 0);
  if (classes < 0 || classes > 256) {
    ph_fail(L, "idx_pair: classes must be 1 to 256 (0: not checked), got %lld", (long long)classes);
  }
  ph_tensor **x = ph_push_tensor(L);
  ph_tensor **y = ph_push_tensor(L);
  if (ph_idx_pair(images, labels, (int)classes, x, y, &err)) {
    return ph_soft(L, &err);
  }
  return ph_tensor_ready(L, 2);
}

const luaL_Reg ph_file_functions[] = {{"write_file", l_write_file},
                                      {"append_line", l_append_line},
                                      {"read_file", l_read_file},
                                      {"mkdir", l_mkdir},
                                      {"temp_dir", l_temp_dir},
                                      {"remove", l_remove},
                                      {"rename", l_rename},
                                      {"list_dir", l_list_dir},
                                      {"stat", l_stat},
                                      {"realpath", l_realpath},
                                      {"cwd", l_cwd},
                                      {"sha256", l_sha256},
                                      {"sha256_file", l_sha256_file},
                                      {"lock", l_lock},
                                      {"idx_read", l_idx_read},
                                      {"idx_pair", l_idx_pair},
                                      {NULL, NULL}};
