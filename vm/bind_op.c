/* bind_op.c - the table of ops (ir/op.h): its rows for documentation and certificates, and single ops run on tensors. */
#include <string.h>

#include "engine_box.h"
#include "ir/op.h"

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, key);
}

/* Attribute names as a list, and what numbers they may be as another. */
static void push_attrs(lua_State *L, const ph_op *op) {
  lua_newtable(L);
  lua_newtable(L);
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i].name; i++) {
    lua_pushstring(L, op->attr[i].name);
    lua_rawseti(L, -3, i + 1);
    lua_pushstring(L, ph_attr_kind_name(op->attr[i].kind));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -3, "attr_kinds");
  lua_setfield(L, -2, "attrs");
}

static void push_row(lua_State *L, const ph_op *op) {
  lua_createtable(L, 0, 12);
  set_string(L, "name", op->name);
  set_string(L, "args", op->args);
  push_attrs(L, op);
  lua_pushboolean(L, op->word);
  lua_setfield(L, -2, "word");
  lua_pushboolean(L, op->shape == NULL);
  lua_setfield(L, -2, "leaf");
  set_string(L, "gain", ph_gain_name(op->gain));
  set_number(L, "lipschitz", op->lipschitz);
  set_number(L, "output_bound", op->output_bound);
  set_number(L, "at_zero", op->at_zero);
  if (op->failure) {
    set_string(L, "failure", op->failure);
  }
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

/* Arguments 1 to 4 of native.op and native.op_bwd, 1 to 3 of native.op_shape. */
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
  for (int i = 0; i < PH_OP_ATTRS && c->op->attr[i].name; i++) {
    int ok = 0;
    lua_getfield(L, 3, c->op->attr[i].name);
    c->attr[i] = lua_tonumberx(L, -1, &ok);
    if (!ok) {
      ph_fail(L, "%s: attribute '%s' is missing or not a number", c->op->name, c->op->attr[i].name);
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

/* The op, how many arguments there are in the list at 2, and its attributes. */
static void check_op(lua_State *L, op_call *c) {
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
  check_attrs(L, c);
}

static void check_call(lua_State *L, op_call *c) {
  check_op(L, c);
  for (int i = 0; i < c->nargs; i++) {
    lua_rawgeti(L, 2, i + 1); /* stays alive in the table */
    c->in[i] = ph_test_tensor(L, -1);
    if (!c->in[i]) {
      ph_fail(L, "%s: argument %d is a %s, not a tensor", c->op->name, i + 1, luaL_typename(L, -1));
    }
    lua_pop(L, 1);
  }
  for (int i = 0; lua_istable(L, 4) && i < c->nargs; i++) {
    lua_rawgeti(L, 4, i + 1);
    c->sample[i] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
}

static int64_t shape_field(lua_State *L, const char *key) {
  lua_getfield(L, -1, key);
  int64_t v = luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return v;
}

static int l_op_shape(lua_State *L) {
  op_call c;
  ph_shape in[PH_OP_ARGS];
  ph_shape out;
  ph_err err;
  lua_settop(L, 3);
  check_op(L, &c);
  if (c.nargs != ph_op_nargs(c.op)) {
    ph_fail(L, "%s: takes %d arguments, got %d", c.op->name, ph_op_nargs(c.op), c.nargs);
  }
  for (int i = 0; i < c.nargs; i++) {
    lua_rawgeti(L, 2, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    in[i] = (ph_shape){shape_field(L, "pos"), shape_field(L, "wide"), shape_field(L, "rows"), shape_field(L, "cols")};
    lua_pop(L, 1);
  }
  if (ph_op_shape(c.op, in, c.attr, &out, &err)) {
    return ph_soft(L, &err);
  }
  lua_createtable(L, 0, 4);
  set_integer(L, "pos", out.pos);
  set_integer(L, "wide", out.wide);
  set_integer(L, "rows", out.rows);
  set_integer(L, "cols", out.cols);
  return 1;
}

static int l_op(lua_State *L) {
  op_call c;
  ph_err err;
  lua_settop(L, 4);
  check_call(L, &c);
  ph_tensor **out = ph_push_tensor(L);
  if (ph_op_eager(c.op, c.nargs, c.in, c.sample, c.attr, out, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_op_bwd(lua_State *L) {
  op_call c;
  ph_err err;
  ph_tensor *gin[PH_OP_ARGS] = {NULL};
  ph_tensor **slot[PH_OP_ARGS];
  lua_settop(L, 5);
  check_call(L, &c);
  const ph_tensor *gout = ph_check_tensor(L, 5);
  int n = c.nargs;
  for (int i = 0; i < n; i++) {
    slot[i] = ph_push_tensor(L);
  }
  ph_status st = ph_op_eager_bwd(c.op, n, c.in, c.sample, c.attr, gout, gin, &err);
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
    lua_pushvalue(L, first + i);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

const luaL_Reg ph_op_functions[] = {
    {"ops", l_ops}, {"op_shape", l_op_shape}, {"op", l_op}, {"op_bwd", l_op_bwd}, {NULL, NULL}};
