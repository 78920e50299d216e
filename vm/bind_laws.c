/* bind_laws.c - random streams and deep spectra (laws/laws.h) as native.laws. */
#include "bind.h"
#include "laws/laws.h"
#include "tensor_box.h"

/* A pool that Lua collects should an error be raised while it is in use. */
static ph_pool *push_pool(lua_State *L, lua_Integer threads) {
  if (threads < 1 || threads > 1024) {
    ph_fail(L, "threads = %lld is outside 1 .. 1024", (long long)threads);
  }
  ph_pool **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  luaL_setmetatable(L, "ph.laws.pool");
  ph_err err;
  if (ph_pool_new(slot, (int)threads, &err)) {
    ph_raise(L, &err);
  }
  return *slot;
}

/* Ends the threads as soon as the work is done: a process with threads must not fork. */
static int l_pool_close(lua_State *L) {
  ph_pool **slot = luaL_checkudata(L, 1, "ph.laws.pool");
  ph_pool_free(*slot);
  *slot = NULL;
  return 0;
}

static void close_pool(lua_State *L, int index) {
  ph_pool **slot = lua_touserdata(L, index);
  ph_pool_free(*slot);
  *slot = NULL;
}

static double number_field(lua_State *L, const char *name, double def) {
  lua_getfield(L, 1, name);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return def;
  }
  int ok;
  double v = lua_tonumberx(L, -1, &ok);
  if (!ok) {
    ph_fail(L, "random streams: %s must be a number, got a %s", name, luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  return v;
}

static int64_t integer_field(lua_State *L, const char *name, int64_t def) {
  lua_getfield(L, 1, name);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return def;
  }
  int ok;
  lua_Integer v = lua_tointegerx(L, -1, &ok);
  if (!ok) {
    ph_fail(L, "random streams: %s must be an integer", name);
  }
  lua_pop(L, 1);
  return v;
}

/* The table at 1: { seed, streams, inputs, depth, width, step, transport, damping, port, control, budget, threads }. */
static ph_laws_random check_config(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  return (ph_laws_random){
      .seed = (uint64_t)integer_field(L, "seed", 0),
      .streams = integer_field(L, "streams", 1),
      .inputs = integer_field(L, "inputs", 1),
      .depth = integer_field(L, "depth", 1),
      .width = integer_field(L, "width", 32),
      .step = number_field(L, "step", 0.1),
      .transport = number_field(L, "transport", 1),
      .damping = number_field(L, "damping", 0),
      .port = number_field(L, "port", 0),
      .control = number_field(L, "control", 0),
      .budget = number_field(L, "budget", 0),
  };
}

static double *push_norms(lua_State *L, const ph_laws_random *c) {
  int64_t dim[2] = {c->streams * c->inputs, c->depth + 1};
  ph_check_room(L, (double)dim[0] * (double)dim[1] * 8);
  return ph_new_tensor(L, PH_F64, 2, dim)->data;
}

/* Checks the configuration and pushes the pool; returns its stack index. */
static int prepare(lua_State *L, ph_laws_random *c, ph_pool **pool) {
  *c = check_config(L);
  ph_err err;
  if (ph_laws_check(c, &err)) {
    ph_raise(L, &err);
  }
  *pool = push_pool(L, integer_field(L, "threads", 1));
  return lua_gettop(L);
}

/* native.laws.conserve(config) -> norm, bound (streams * inputs, depth + 1), number of guarded layers */
static int l_laws_conserve(lua_State *L) {
  ph_laws_random c;
  ph_pool *pool;
  int at = prepare(L, &c, &pool);
  double *norm = push_norms(L, &c);
  double *bound = push_norms(L, &c);
  int64_t guarded = 0;
  ph_err err;
  ph_status st = ph_laws_conserve(&c, pool, norm, bound, &guarded, &err);
  close_pool(L, at);
  if (st) {
    return ph_raise(L, &err);
  }
  lua_pushinteger(L, guarded);
  return 3;
}

/* native.laws.twin(config) -> norm, largest error of the rebuilt generators */
static int l_laws_twin(lua_State *L) {
  ph_laws_random c;
  ph_pool *pool;
  int at = prepare(L, &c, &pool);
  double *norm = push_norms(L, &c);
  double roundtrip = 0;
  ph_err err;
  ph_status st = ph_laws_twin(&c, pool, norm, &roundtrip, &err);
  close_pool(L, at);
  if (st) {
    return ph_raise(L, &err);
  }
  lua_pushnumber(L, roundtrip);
  return 2;
}

/* native.laws.control(config) -> norm */
static int l_laws_control(lua_State *L) {
  ph_laws_random c;
  ph_pool *pool;
  int at = prepare(L, &c, &pool);
  double *norm = push_norms(L, &c);
  ph_err err;
  ph_status st = ph_laws_control(&c, pool, norm, &err);
  close_pool(L, at);
  return st ? ph_raise(L, &err) : 1;
}

/* native.laws.gradient(config) -> norms of the stream's and of the standard gradients */
static int l_laws_gradient(lua_State *L) {
  ph_laws_random c;
  ph_pool *pool;
  int at = prepare(L, &c, &pool);
  double *ph = push_norms(L, &c);
  double *standard = push_norms(L, &c);
  ph_err err;
  ph_status st = ph_laws_gradient(&c, pool, ph, standard, &err);
  close_pool(L, at);
  return st ? ph_raise(L, &err) : 2;
}

/* native.laws.spectrum(M, passes, threads): M (layers, d, d) or (count, layers, d, d) f64 -> logs (d) or (count, d), change (count) */
static int l_laws_spectrum(lua_State *L) {
  const ph_tensor *M = ph_check_tensor(L, 1);
  char have[96];
  if (M->dtype != PH_F64 || M->rank < 3 || M->dim[M->rank - 1] != M->dim[M->rank - 2]) {
    ph_fail(L, "spectrum: the argument must be a stack of square f64 matrices, got %s",
            ph_tensor_describe(M, have, sizeof have));
  }
  int64_t count = M->rank == 4 ? M->dim[0] : 1;
  int64_t layers = M->dim[M->rank - 3];
  int64_t d = M->dim[M->rank - 1];
  int passes = (int)luaL_optinteger(L, 2, 1);
  ph_pool *pool = push_pool(L, luaL_optinteger(L, 3, 1));
  int at = lua_gettop(L);
  int64_t dim[2] = {count, d};
  ph_tensor *logs = ph_new_tensor(L, PH_F64, M->rank == 4 ? 2 : 1, M->rank == 4 ? dim : dim + 1);
  ph_tensor *change = ph_new_tensor(L, PH_F64, 1, dim);
  ph_err err;
  ph_status st = ph_laws_spectrum(count, layers, d, M->data, passes, pool, logs->data, change->data, &err);
  close_pool(L, at);
  return st ? ph_raise(L, &err) : 2;
}

void ph_bind_laws(lua_State *L) {
  static const luaL_Reg functions[] = {{"conserve", l_laws_conserve}, {"twin", l_laws_twin},
                                       {"control", l_laws_control},   {"gradient", l_laws_gradient},
                                       {"spectrum", l_laws_spectrum}, {NULL, NULL}};
  ph_metatable(L, "ph.laws.pool", (const luaL_Reg[]){{NULL, NULL}}, NULL, l_pool_close);
  luaL_newlib(L, functions);
  lua_setfield(L, -2, "laws");
}
