/* bind_store.c - run files as Lua values: h5_write takes a list of items, h5_read gives a reader. See core/store/store.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/store.h"
#include "store_box.h"

#define IMAGE "ph.image"
#define READER "ph.reader"

/* ---- writing ---- */

static int l_image_close(lua_State *L) {
  ph_image **slot = luaL_checkudata(L, 1, IMAGE);
  ph_image_free(*slot);
  *slot = NULL;
  return 0;
}

static ph_image **push_image(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  ph_image **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  ph_metatable(L, IMAGE, none, NULL, l_image_close);
  luaL_setmetatable(L, IMAGE);
  return slot;
}

/* Item i of the list at 2 lies on the stack: its path, attr (or nil) and value are pushed. */
static void push_fields(lua_State *L, lua_Integer i) {
  static const char *const keys[] = {"path", "attr", "value"};
  int item = lua_gettop(L);
  if (!lua_istable(L, item)) {
    ph_fail(L, "h5_write: item %lld is a %s, not a table", (long long)i, luaL_typename(L, item));
  }
  for (int k = 0; k < 3; k++) {
    lua_getfield(L, item, keys[k]);
  }
  if (lua_type(L, item + 1) != LUA_TSTRING) {
    ph_fail(L, "h5_write: item %lld has no path", (long long)i);
  }
  if (!lua_isnil(L, item + 2) && lua_type(L, item + 2) != LUA_TSTRING) {
    ph_fail(L, "h5_write: item %lld (%s): attr is a %s, not a name", (long long)i, lua_tostring(L, item + 1),
            luaL_typename(L, item + 2));
  }
}

/* path, attr and value are the topmost three. */
static ph_status put_attr(lua_State *L, ph_image *im, ph_err *err) {
  const char *path = ph_check_path(L, -3);
  const char *name = ph_check_path(L, -2);
  if (lua_isinteger(L, -1)) {
    return ph_image_attr_i64(im, path, name, lua_tointeger(L, -1), err);
  }
  if (lua_type(L, -1) == LUA_TNUMBER) {
    return ph_image_attr_f64(im, path, name, lua_tonumber(L, -1), err);
  }
  if (lua_type(L, -1) != LUA_TSTRING) {
    ph_fail(L, "h5_write: attribute '%s' of %s is a %s, not a number or text", name, path, luaL_typename(L, -1));
  }
  size_t n;
  const char *text = lua_tolstring(L, -1, &n);
  if (strlen(text) != n) {
    return ph_err_set(err, PH_E_ARG, "'%s': attribute '%s' holds a NUL byte", path, name);
  }
  return ph_image_attr_text(im, path, name, text, err);
}

static ph_status put_dataset(lua_State *L, ph_image *im, ph_err *err) {
  size_t n;
  const char *path = ph_check_path(L, -3);
  if (lua_type(L, -1) == LUA_TSTRING) {
    const char *text = lua_tolstring(L, -1, &n);
    return ph_image_text(im, path, text, n, err);
  }
  const ph_tensor *t = ph_test_tensor(L, lua_gettop(L));
  if (!t) {
    ph_fail(L, "h5_write: the value of %s is a %s, not a tensor or text", path, luaL_typename(L, -1));
  }
  return ph_image_tensor(im, path, t, err);
}

/* native.h5_write(path, items) -> true */
static int l_h5_write(lua_State *L) {
  ph_err err;
  size_t n;
  const char *path = ph_check_path(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  ph_image **im = push_image(L);
  void **bytes = ph_push_block(L);
  ph_status status = ph_image_new(im, &err);
  lua_Integer count = luaL_len(L, 2);
  for (lua_Integer i = 1; i <= count && status == PH_OK; i++) {
    lua_geti(L, 2, i);
    push_fields(L, i);
    status = lua_isnil(L, -2) ? put_dataset(L, *im, &err) : put_attr(L, *im, &err);
    lua_pop(L, 4);
  }
  if (status == PH_OK) {
    status = ph_image_finish(*im, bytes, &n, &err);
  }
  ph_image_free(*im);
  *im = NULL;
  if (status == PH_OK) {
    status = ph_file_write(path, *bytes, n, &err);
  } else {
    status = ph_err_prefix(&err, status, "%s", path);
  }
  ph_block_free(bytes);
  if (status != PH_OK) {
    return ph_soft(L, &err);
  }
  lua_pushboolean(L, true);
  return 1;
}

/* ---- reading ---- */

static ph_reader *check_reader(lua_State *L) {
  ph_reader **slot = luaL_checkudata(L, 1, READER);
  if (!*slot) {
    ph_fail(L, "the reader is closed");
  }
  return *slot;
}

static int l_reader_close(lua_State *L) {
  ph_reader **slot = luaL_checkudata(L, 1, READER);
  if (*slot) {
    ph_live_add(PH_LIVE_READER, -1);
  }
  ph_reader_close(*slot);
  *slot = NULL;
  return 0;
}

static int l_h5_read(lua_State *L) {
  ph_err err;
  const char *path = ph_check_path(L, 1);
  ph_reader **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  luaL_setmetatable(L, READER);
  if (ph_reader_open(slot, path, &err)) {
    return ph_soft(L, &err);
  }
  ph_live_add(PH_LIVE_READER, 1);
  return 1;
}

static void push_kind(lua_State *L, ph_item kind) {
  static const char *const names[] = {NULL, "group", "tensor", "text"};
  lua_pushstring(L, names[kind]); /* nil for NULL */
}

static int l_reader_kind(lua_State *L) {
  push_kind(L, ph_reader_kind(check_reader(L), ph_check_path(L, 2)));
  return 1;
}

static int l_reader_sealed(lua_State *L) {
  lua_pushboolean(L, ph_reader_sealed(check_reader(L)));
  return 1;
}

/* What a walk found: per entry a byte for the kind and the NUL-terminated text. Collected before Lua sees any of it, for Lua
 * may raise and must not jump over HDF5. */
typedef struct found {
  char **block; /* slot of a ph_push_block */
  size_t n, room;
  lua_Integer count;
} found;

static int note(void *ctx, const char *text, ph_item kind) {
  found *f = ctx;
  size_t len = strlen(text) + 2;
  if (f->n + len > f->room) {
    size_t room = 2 * (f->room + len);
    char *more = ph_mem_grow(*f->block, f->n, room, 1);
    if (!more) {
      return -1;
    }
    *f->block = more;
    f->room = room;
  }
  (*f->block)[f->n] = (char)kind;
  memcpy(*f->block + f->n + 1, text, len - 1);
  f->n += len;
  f->count++;
  return 0;
}

static int note_name(void *ctx, const char *name) { return note(ctx, name, PH_ITEM_NONE); }

static bool found_init(lua_State *L, found *f) {
  *f = (found){.block = (char **)ph_push_block(L), .room = 256};
  *f->block = ph_mem_new(f->room, 1);
  return *f->block != NULL;
}

static int soft_listing(lua_State *L, const char *path) {
  ph_err err;
  (void)ph_err_set(&err, PH_E_FORMAT, "'%s' cannot be listed: the file is damaged or memory is short", path);
  return ph_soft(L, &err);
}

static int l_reader_list(lua_State *L) {
  found f;
  ph_reader *r = check_reader(L);
  const char *path = ph_check_path(L, 2);
  if (!found_init(L, &f) || ph_reader_walk(r, path, note, &f) != 0) {
    return soft_listing(L, path);
  }
  lua_createtable(L, (int)f.count, 0);
  const char *p = *f.block;
  for (lua_Integer i = 1; i <= f.count; i++, p += strlen(p + 1) + 2) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, p + 1);
    lua_setfield(L, -2, "path");
    push_kind(L, (ph_item)*p);
    lua_setfield(L, -2, "kind");
    lua_rawseti(L, -2, i);
  }
  ph_block_free((void **)f.block);
  return 1;
}

static int l_reader_tensor(lua_State *L) {
  ph_err err;
  ph_reader *r = check_reader(L);
  const char *path = ph_check_path(L, 2);
  ph_tensor **t = ph_push_tensor(L);
  if (ph_reader_tensor(r, path, t, &err)) {
    return ph_soft(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_reader_text(lua_State *L) {
  ph_err err;
  size_t n;
  ph_reader *r = check_reader(L);
  const char *path = ph_check_path(L, 2);
  char **text = (char **)ph_push_block(L);
  if (ph_reader_text(r, path, text, &n, &err)) {
    return ph_soft(L, &err);
  }
  lua_pushlstring(L, *text, n);
  ph_block_free((void **)text);
  return 1;
}

/* Pushes one value: an integer, a number or text as it was written. */
static ph_status push_attr(lua_State *L, ph_reader *r, const char *path, const char *name, ph_err *err) {
  int64_t i;
  double f;
  ph_status status = ph_reader_attr_i64(r, path, name, &i, err);
  if (status == PH_OK) {
    lua_pushinteger(L, i);
  }
  if (status != PH_E_DTYPE) {
    return status;
  }
  status = ph_reader_attr_f64(r, path, name, &f, err);
  if (status == PH_OK) {
    lua_pushnumber(L, f);
  }
  if (status != PH_E_DTYPE) {
    return status;
  }
  char **text = (char **)ph_push_block(L);
  status = ph_reader_attr_text(r, path, name, text, err);
  if (status == PH_OK) {
    lua_pushstring(L, *text);
    ph_block_free((void **)text);
  }
  return status;
}

static int l_reader_attr(lua_State *L) {
  ph_err err;
  ph_reader *r = check_reader(L);
  ph_status status = push_attr(L, r, ph_check_path(L, 2), ph_check_path(L, 3), &err);
  if (status != PH_OK && status != PH_E_NOTFOUND) {
    return ph_soft(L, &err);
  }
  if (status == PH_E_NOTFOUND) {
    lua_pushnil(L);
  }
  return 1;
}

/* A table of all attributes by name; those of a kind that phrun does not write are left out. */
static int l_reader_attrs(lua_State *L) {
  found f;
  ph_err err;
  ph_reader *r = check_reader(L);
  const char *path = ph_check_path(L, 2);
  if (!found_init(L, &f) || ph_reader_attrs(r, path, note_name, &f) != 0) {
    return soft_listing(L, path);
  }
  lua_newtable(L);
  int table = lua_gettop(L);
  const char *p = *f.block;
  for (lua_Integer i = 1; i <= f.count; i++, p += strlen(p + 1) + 2) {
    if (push_attr(L, r, path, p + 1, &err) == PH_OK) {
      lua_setfield(L, table, p + 1);
    }
    lua_settop(L, table);
  }
  ph_block_free((void **)f.block);
  return 1;
}

void ph_bind_store(lua_State *L) {
  static const luaL_Reg functions[] = {{"h5_write", l_h5_write}, {"h5_read", l_h5_read}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"kind", l_reader_kind}, {"sealed", l_reader_sealed}, {"list", l_reader_list},   {"tensor", l_reader_tensor},
      {"text", l_reader_text}, {"attr", l_reader_attr},     {"attrs", l_reader_attrs}, {NULL, NULL}};
  ph_metatable(L, READER, methods, NULL, l_reader_close);
  ph_bind_lock(L);
  luaL_setfuncs(L, functions, 0);
  luaL_setfuncs(L, ph_file_functions, 0);
  lua_pushstring(L, ph_store_hdf5());
  lua_setfield(L, -2, "hdf5_version");
}
