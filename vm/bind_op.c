/* bind_op.c - the table of ops (ir/op.h): its rows for documentation and certificates, and single ops run on tensors. */
#include <string.h>

#include "engine_box.h"
#include "ir/op.h"

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static const char *gain_name(ph_gain gain) {
  static const char *const names[] = {
      [PH_GAIN_NONE] = "none",           [PH_GAIN_ISOMETRY] = "isometry", [PH_GAIN_NONEXPAND] = "nonexpand",
      [PH_GAIN_MATRIX] = "matrix",       [PH_GAIN_SCALE] = "scale",       [PH_GAIN_SUM] = "sum",
      [PH_GAIN_LIPSCHITZ] = "lipschitz", [PH_GAIN_AFFINE] = "affine",     [PH_GAIN_PRODUCT] = "product",
      [PH_GAIN_NORMALIZE] = "normalize"};
  return names[gain];
}

static void push_row(lua_State *L, const ph_op *op) {
  lua_createtable(L, 0, 8);
  set_string(L, "name", op->name);
  lua_pushinteger(L, op->nargs);
  lua_setfield(L, -2, "nargs");
  lua_createtable(L, PH_OP_ATTRS, 0);
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i]; i++) {
    lua_pushstring(L, op->attr[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "attrs");
  set_string(L, "gain", gain_name(op->gain));
  lua_pushnumber(L, op->gain_value);
  lua_setfield(L, -2, "gain_value");
  lua_pushnumber(L, op->output_bound);
  lua_setfield(L, -2, "output_bound");
  lua_pushnumber(L, op->at_zero);
  lua_setfield(L, -2, "at_zero");
  set_string(L, "equation", op->equation);
  set_string(L, "doc", op->doc);
}

static int l_ops(lua_State *L) {
  int n = ph_op_count();
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    push_row(L, ph_op_at(i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* Arguments 1 to 4 of native.op and native.op_bwd. */
typedef struct op_call {
  const ph_op *op;
  int nargs;
  const ph_tensor *in[PH_OP_ARGS];
  bool sample[PH_OP_ARGS];
  double attr[PH_OP_ATTRS];
} op_call;

static void check_attrs(lua_State *L, op_call *c) {
  if (lua_isnil(L, 3)) {
    lua_newtable(L);
    lua_replace(L, 3);
  }
  luaL_checktype(L, 3, LUA_TTABLE);
  int known = 0;
  int given = 0;
  for (int i = 0; i < PH_OP_ATTRS && c->op->attr[i]; i++) {
    int ok;
    lua_getfield(L, 3, c->op->attr[i]);
    c->attr[i] = lua_tonumberx(L, -1, &ok);
    if (!ok) {
      ph_fail(L, "%s: attribute '%s' is missing or no number", c->op->name, c->op->attr[i]);
    }
    lua_pop(L, 1);
    known++;
  }
  for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
    given++;
  }
  if (given != known) {
    ph_fail(L, "%s: %d attributes given, it takes %d", c->op->name, given, known);
  }
}

static void check_call(lua_State *L, op_call *c) {
  const char *name = luaL_checkstring(L, 1);
  memset(c, 0, sizeof *c);
  c->op = ph_op_find(name);
  if (!c->op) {
    ph_fail(L, "no op is called '%s'", name);
  }
  luaL_checktype(L, 2, LUA_TTABLE);
  c->nargs = (int)lua_rawlen(L, 2);
  if (c->nargs > PH_OP_ARGS) {
    ph_fail(L, "%s: %d arguments, at most %d", name, c->nargs, PH_OP_ARGS);
  }
  for (int i = 0; i < c->nargs; i++) {
    lua_rawgeti(L, 2, i + 1); /* stays alive in the table */
    c->in[i] = ph_test_tensor(L, -1);
    if (!c->in[i]) {
      ph_fail(L, "%s: argument %d is a %s, not a tensor", name, i + 1, luaL_typename(L, -1));
    }
    lua_pop(L, 1);
  }
  int has_samples = lua_istable(L, 4);
  for (int i = 0; has_samples && i < c->nargs; i++) {
    lua_rawgeti(L, 4, i + 1);
    c->sample[i] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
}

static int l_op(lua_State *L) {
  op_call c;
  lua_settop(L, 4);
  check_call(L, &c);
  check_attrs(L, &c);
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_op_eager(c.op, c.nargs, c.in, c.sample, c.attr, out, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_op_bwd(lua_State *L) {
  op_call c;
  lua_settop(L, 5);
  check_call(L, &c);
  const ph_tensor *gout = ph_check_tensor(L, 5);
  check_attrs(L, &c);
  ph_tensor *gin[PH_OP_ARGS] = {NULL};
  ph_tensor **slot[PH_OP_ARGS];
  const int n = c.nargs;
  for (int i = 0; i < n; i++) {
    slot[i] = ph_push_tensor(L);
  }
  ph_err err;
  ph_status st = ph_op_eager_bwd(c.op, c.nargs, c.in, c.sample, c.attr, gout, gin, &err);
  for (int i = 0; i < n; i++) {
    *slot[i] = gin[i];
  }
  if (st) {
    return ph_raise(L, &err);
  }
  ph_tensor_ready(L, n);
  int first = lua_gettop(L) - n + 1;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    if (gin[i]) {
      lua_pushvalue(L, first + i);
    } else {
      lua_pushboolean(L, 0);
    }
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

const luaL_Reg ph_op_functions[] = {{"ops", l_ops}, {"op", l_op}, {"op_bwd", l_op_bwd}, {NULL, NULL}};
