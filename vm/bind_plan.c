/* bind_plan.c - compiled plans as Lua values: making them, their parameters, and what they say about themselves.
 * Running them is in bind_plan_run.c. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine_box.h"

void ph_check_keys(lua_State *L, int arg, const char *what, const char *const keys[]) {
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    int i = 0;
    while (key && keys[i] && strcmp(keys[i], key)) {
      i++;
    }
    if (!key || !keys[i]) {
      ph_fail(L, "%s: unknown key '%s'", what, key ? key : luaL_typename(L, -2));
    }
  }
}

ph_plan_box *ph_check_plan(lua_State *L) {
  ph_plan_box *b = luaL_checkudata(L, 1, PH_PLAN);
  if (!b->plan) {
    ph_fail(L, "plan is closed");
  }
  return b;
}

static int l_plan_close(lua_State *L) {
  ph_plan_box *b = luaL_checkudata(L, 1, PH_PLAN);
  if (b->plan) {
    ph_live_add(PH_LIVE_PLAN, -1);
  }
  ph_plan_free(b->plan);
  ph_mem_free(b->row);
  b->plan = NULL;
  b->row = NULL;
  b->row_room = 0;
  return 0;
}

static int64_t field_count(lua_State *L, int arg, const char *key, int64_t most) {
  lua_getfield(L, arg, key);
  int ok = 1;
  lua_Integer v = lua_isnil(L, -1) ? 0 : lua_tointegerx(L, -1, &ok);
  if (!ok || v < 0 || v > most) {
    ph_fail(L, "plan: %s must be an integer from 0 to %lld, got %s", key, (long long)most, luaL_tolstring(L, -1, NULL));
  }
  lua_pop(L, 1);
  return v;
}

static void check_options(lua_State *L, int arg, ph_plan_options *o) {
  static const char *const keys[] = {"batch", "threads", "tape_bytes", "probe", NULL};
  if (lua_isnoneornil(L, arg)) {
    return;
  }
  luaL_checktype(L, arg, LUA_TTABLE);
  ph_check_keys(L, arg, "plan", keys);
  o->batch = field_count(L, arg, "batch", 1 << 24);
  o->threads = (int)field_count(L, arg, "threads", 1024);
  o->tape_bytes = field_count(L, arg, "tape_bytes", INT64_MAX);
  lua_getfield(L, arg, "probe");
  o->probe = lua_toboolean(L, -1);
  lua_pop(L, 1);
}

static int l_plan(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  ph_plan_options o = {0};
  check_options(L, 2, &o);
  ph_plan_box *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  luaL_setmetatable(L, PH_PLAN);
  ph_err err;
  if (ph_plan_new(&b->plan, text, n, &o, &err)) {
    return ph_soft(L, &err);
  }
  ph_live_add(PH_LIVE_PLAN, 1);
  ph_cost cost;
  ph_plan_cost(b->plan, &cost);
  int64_t kib = (cost.bytes_param + cost.bytes_tape) >> 10;
  lua_gc(L, LUA_GCSTEP, kib < 1 << 20 ? (int)kib : 1 << 20);
  return 1;
}

/* ---- data ---- */

typedef struct data_box {
  bool counted;
} data_box;

static int l_data_close(lua_State *L) {
  data_box *d = luaL_checkudata(L, 1, PH_DATA);
  if (d->counted) {
    ph_live_add(PH_LIVE_DATA, -1);
  }
  d->counted = false;
  for (int i = 1; i <= 2; i++) {
    lua_pushnil(L);
    lua_setiuservalue(L, 1, i);
  }
  return 0;
}

/* native.data(x, y): the tensors live as long as this does, in its user values. */
static int l_data(lua_State *L) {
  const ph_tensor *x = ph_check_tensor(L, 1);
  const ph_tensor *y = lua_isnoneornil(L, 2) ? NULL : ph_check_tensor(L, 2);
  char sx[96];
  char sy[96];
  lua_settop(L, 2);
  if (x->rank != 2) {
    ph_fail(L, "data: inputs must be (samples, features), got %s", ph_tensor_describe(x, sx, sizeof sx));
  }
  if (y && (y->rank == 0 || y->dim[0] != x->dim[0])) {
    ph_fail(L, "data: inputs %s and targets %s differ in samples", ph_tensor_describe(x, sx, sizeof sx),
            ph_tensor_describe(y, sy, sizeof sy));
  }
  if (y && !(y->dtype == PH_I32 && y->rank == 1) && !(y->dtype == x->dtype && y->rank == 2)) {
    ph_fail(L, "data: targets must be i32 labels or a matrix of %s, got %s", ph_dtype_name(x->dtype),
            ph_tensor_describe(y, sy, sizeof sy));
  }
  data_box *d = lua_newuserdatauv(L, sizeof *d, 2);
  d->counted = true;
  ph_live_add(PH_LIVE_DATA, 1);
  luaL_setmetatable(L, PH_DATA);
  for (int i = 1; i <= 2; i++) {
    lua_pushvalue(L, i);
    lua_setiuservalue(L, 3, i);
  }
  return 1;
}

void ph_check_data(lua_State *L, int arg, ph_data *out) {
  luaL_checkudata(L, arg, PH_DATA);
  memset(out, 0, sizeof *out);
  if (lua_getiuservalue(L, arg, 1) == LUA_TNIL) {
    ph_fail(L, "data is closed");
  }
  out->x = ph_source_rows(ph_check_tensor(L, -1));
  if (lua_getiuservalue(L, arg, 2) != LUA_TNIL) {
    const ph_tensor *y = ph_check_tensor(L, -1);
    if (y->dtype == PH_I32) {
      out->label = y->data;
    } else {
      out->target = ph_source_rows(y);
    }
  }
  lua_pop(L, 2);
}

/* ---- parameters ---- */

static int l_plan_init(lua_State *L) {
  ph_plan_init(ph_check_plan(L)->plan, (uint64_t)luaL_checkinteger(L, 2));
  return 0;
}

static int l_plan_refresh(lua_State *L) {
  ph_plan_refresh(ph_check_plan(L)->plan);
  return 0;
}

/* { name, count, shape = { layers, rows, cols } } of parameter i. */
static void push_param(lua_State *L, const ph_plan *plan, int i) {
  int64_t dim[3];
  ph_plan_param_shape(plan, i, dim);
  lua_createtable(L, 0, 3);
  lua_pushstring(L, ph_plan_param_name(plan, i));
  lua_setfield(L, -2, "name");
  lua_pushinteger(L, dim[0] * dim[1] * dim[2]);
  lua_setfield(L, -2, "count");
  lua_createtable(L, 3, 0);
  for (int d = 0; d < 3; d++) {
    lua_pushinteger(L, dim[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_setfield(L, -2, "shape");
}

static int l_plan_params(lua_State *L) {
  const ph_plan *plan = ph_check_plan(L)->plan;
  int n = ph_plan_param_count(plan);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    push_param(L, plan, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushinteger(L, ph_plan_param_total(plan));
  return 2;
}

/* Parameter by name at argument 2. */
static int find_param(lua_State *L, const ph_plan *plan) {
  const char *name = luaL_checkstring(L, 2);
  for (int i = 0; i < ph_plan_param_count(plan); i++) {
    if (strcmp(ph_plan_param_name(plan, i), name) == 0) {
      return i;
    }
  }
  return ph_fail(L, "this model has no parameter '%s'", name);
}

/* Parameter by name at argument 2, slot at argument 3. */
static int check_param(lua_State *L, const ph_plan *plan, ph_moment *which) {
  static const char *const slots[] = {"value", "moment1", "moment2", "grad", NULL};
  const char *wanted = luaL_optstring(L, 3, "value");
  int s = 0;
  while (slots[s] && strcmp(slots[s], wanted)) {
    s++;
  }
  if (!slots[s]) {
    ph_fail(L, "no slot is called '%s' (value moment1 moment2 grad)", wanted);
  }
  *which = (ph_moment)s;
  return find_param(L, plan);
}

static int l_plan_get(lua_State *L) {
  const ph_plan *plan = ph_check_plan(L)->plan;
  ph_moment which;
  int i = check_param(L, plan, &which);
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_plan_get(plan, i, which, out, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_plan_set(lua_State *L) {
  ph_plan *plan = ph_check_plan(L)->plan;
  ph_moment which;
  int i = check_param(L, plan, &which);
  ph_err err;
  if (ph_plan_set(plan, i, which, ph_check_tensor(L, 4), &err)) {
    return ph_raise(L, &err);
  }
  return 0;
}

/* plan:rates(name, lr, weight_decay, frozen): nil weight_decay is the optimizer's. */
static int l_plan_rates(lua_State *L) {
  ph_plan *plan = ph_check_plan(L)->plan;
  int i = find_param(L, plan);
  ph_rates r = {luaL_checknumber(L, 3), luaL_optnumber(L, 4, NAN), lua_toboolean(L, 5)};
  if (!(r.lr >= 0) || !isfinite(r.lr)) {
    ph_fail(L, "rates: the factor of %s must be finite and at least 0, got %f", lua_tostring(L, 2), r.lr);
  }
  ph_plan_set_rates(plan, i, &r);
  return 0;
}

static int l_plan_steps(lua_State *L) {
  ph_plan *plan = ph_check_plan(L)->plan;
  if (!lua_isnoneornil(L, 2)) {
    lua_Integer n = luaL_checkinteger(L, 2);
    if (n < 0) {
      ph_fail(L, "steps: %lld is negative", (long long)n);
    }
    ph_plan_set_steps(plan, n);
  }
  lua_pushinteger(L, ph_plan_steps(plan));
  return 1;
}

/* ---- what it is ---- */

static int l_plan_cost(lua_State *L) {
  ph_cost c;
  ph_plan_cost(ph_check_plan(L)->plan, &c);
  const struct {
    const char *key;
    double number;
    int64_t count;
  } fields[] = {{"flops_param", c.flops_param, -1},
                {"flops_stream", c.flops_stream, -1},
                {"flops_forward", c.flops_forward, -1},
                {"bytes_param", 0, c.bytes_param},
                {"bytes_packed", 0, c.bytes_packed},
                {"bytes_grad", 0, c.bytes_grad},
                {"bytes_tape", 0, c.bytes_tape},
                {"groups", 0, c.groups},
                {"tile", 0, c.tile},
                {"chunk", 0, c.window}};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (fields[i].count < 0) {
      lua_pushnumber(L, fields[i].number);
    } else {
      lua_pushinteger(L, fields[i].count);
    }
    lua_setfield(L, -2, fields[i].key);
  }
  return 1;
}

static int l_plan_describe(lua_State *L) {
  const ph_plan *plan = ph_check_plan(L)->plan;
  void **block = ph_push_block(L);
  char *text = NULL;
  ph_err err;
  ph_status st = ph_plan_describe(plan, &text, &err);
  *block = text;
  if (st) {
    return ph_raise(L, &err);
  }
  lua_pushstring(L, text);
  ph_block_free(block);
  return 1;
}

static int l_plan_value(lua_State *L) {
  ph_plan *plan = ph_check_plan(L)->plan;
  const char *name = luaL_checkstring(L, 2);
  ph_tensor **out = ph_push_tensor(L);
  ph_err err;
  if (ph_plan_param_value(plan, name, out, &err)) {
    return ph_raise(L, &err);
  }
  return ph_tensor_ready(L, 1);
}

static int l_plan_model(lua_State *L) {
  ph_push_model(L, ph_plan_model(ph_check_plan(L)->plan));
  return 1;
}

static int l_plan_times(lua_State *L) {
  double stream = 0;
  double layers = 0;
  ph_plan_times(ph_check_plan(L)->plan, &stream, &layers, lua_toboolean(L, 2));
  lua_pushnumber(L, stream);
  lua_pushnumber(L, layers);
  return 2;
}

static const luaL_Reg methods[] = {{"init", l_plan_init},
                                   {"refresh", l_plan_refresh},
                                   {"params", l_plan_params},
                                   {"get", l_plan_get},
                                   {"set", l_plan_set},
                                   {"steps", l_plan_steps},
                                   {"rates", l_plan_rates},
                                   {"cost", l_plan_cost},
                                   {"describe", l_plan_describe},
                                   {"value", l_plan_value},
                                   {"model", l_plan_model},
                                   {"times", l_plan_times},
                                   {NULL, NULL}};

const luaL_Reg ph_plan_functions[] = {{"plan", l_plan}, {"data", l_data}, {NULL, NULL}};

void ph_plan_metatables(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  ph_metatable(L, PH_PLAN, methods, NULL, l_plan_close);
  luaL_getmetatable(L, PH_PLAN);
  lua_getfield(L, -1, "__index");
  luaL_setfuncs(L, ph_plan_run_methods, 0);
  lua_pop(L, 2);
  ph_metatable(L, PH_DATA, none, NULL, l_data_close);
}
