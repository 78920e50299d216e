/* bind_plan_run.c - running a plan on rows of a dataset: step, eval, grad, probe. One call to Lua each, none while it runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine_box.h"

/* The arguments every running method takes: plan, data, rows. */
typedef struct work {
  ph_plan_box *box;
  const ph_ir *model;
  ph_data data;
  const int32_t *row; /* counting from 0 */
  int64_t n;
} work;

static void grow_rows(lua_State *L, ph_plan_box *b, int64_t n) {
  if (n <= b->row_room) {
    return;
  }
  int32_t *more = ph_mem_new((size_t)n, sizeof *more);
  if (!more) {
    ph_fail(L, "no memory for %lld row numbers", (long long)n);
  }
  ph_mem_free(b->row);
  b->row = more;
  b->row_room = n;
}

static void check_rows(lua_State *L, int arg, work *w) {
  int64_t have = w->data.x.n;
  const ph_tensor *idx = lua_isnoneornil(L, arg) ? NULL : ph_check_tensor(L, arg);
  if (idx && (idx->dtype != PH_I32 || idx->rank != 1)) {
    ph_fail(L, "row numbers must be an i32 tensor of one dimension");
  }
  w->n = idx ? idx->dim[0] : have;
  if (w->n > INT32_MAX) {
    ph_fail(L, "%lld rows at once, at most %d", (long long)w->n, INT32_MAX);
  }
  grow_rows(L, w->box, w->n);
  const int32_t *from = idx ? idx->data : NULL;
  for (int64_t i = 0; i < w->n; i++) {
    if (from && (from[i] < 1 || from[i] > have)) {
      ph_fail(L, "row number [%lld] = %d is outside 1..%lld", (long long)i + 1, (int)from[i], (long long)have);
    }
    w->box->row[i] = from ? from[i] - 1 : (int32_t)i;
  }
  w->row = w->box->row;
}

/* Numbers of a sample. */
static int64_t features(ph_shape s) { return s.pos * s.cols; }

static void check_work(lua_State *L, work *w) {
  memset(w, 0, sizeof *w);
  w->box = ph_check_plan(L);
  w->model = ph_plan_model(w->box->plan);
  ph_check_data(L, 2, &w->data);
  const ph_source *x = &w->data.x;
  if (x->dtype != w->model->dtype || x->features != features(w->model->input)) {
    ph_fail(L, "the model takes %s with %lld features, the data are %s (%lld, %lld)", ph_dtype_name(w->model->dtype),
            (long long)features(w->model->input), ph_dtype_name(x->dtype), (long long)x->n, (long long)x->features);
  }
  check_rows(L, 3, w);
}

/* ---- results ---- */

static void set_number(lua_State *L, const char *key, double v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, key);
}

static void set_place(lua_State *L, const char *key, int64_t i) {
  if (i < 0) {
    return;
  }
  lua_pushinteger(L, i + 1);
  lua_setfield(L, -2, key);
}

static void push_result(lua_State *L, const ph_result *r) {
  lua_createtable(L, 0, 8);
  set_number(L, "loss", r->loss);
  lua_pushinteger(L, r->hits);
  lua_setfield(L, -2, "hits");
  lua_pushinteger(L, r->n);
  lua_setfield(L, -2, "n");
  lua_pushboolean(L, r->finite);
  lua_setfield(L, -2, "finite");
  set_place(L, "bad_segment", r->bad_segment);
  set_place(L, "bad_step", r->bad_step);
  if (r->bad_op) {
    lua_pushstring(L, r->bad_op->name);
    lua_setfield(L, -2, "bad_op");
  }
  if (!isnan(r->grad_norm)) {
    set_number(L, "grad_norm", r->grad_norm);
  }
}

/* A zero tensor (rows, cols) on the stack when wanted, else nil; cols < 0: one dimension. */
static ph_tensor *optional_out(lua_State *L, bool wanted, ph_dtype dtype, int64_t rows, int64_t cols) {
  int64_t dim[2] = {rows, cols};
  ph_err err;
  if (!wanted) {
    lua_pushnil(L);
    return NULL;
  }
  ph_check_room(L, (double)rows * (double)(cols < 0 ? 1 : cols) * (double)ph_dtype_size(dtype));
  ph_tensor **out = ph_push_tensor(L);
  if (ph_tensor_new(out, dtype, cols < 0 ? 1 : 2, dim, &err)) {
    ph_raise(L, &err);
  }
  ph_tensor_ready(L, 1);
  return *out;
}

/* ---- optimizer ---- */

static double field_number(lua_State *L, int arg, const char *key, double def) {
  int ok = 1;
  lua_getfield(L, arg, key);
  double v = lua_isnil(L, -1) ? def : lua_tonumberx(L, -1, &ok);
  if (!ok || !isfinite(v)) {
    ph_fail(L, "optimizer: %s must be a finite number, got %s", key, luaL_tolstring(L, -1, NULL));
  }
  lua_pop(L, 1);
  return v;
}

static void check_optim(lua_State *L, int arg, ph_optim *o) {
  static const char *const keys[] = {"kind", "lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "clip", NULL};
  luaL_checktype(L, arg, LUA_TTABLE);
  ph_check_keys(L, arg, "optimizer", keys);
  lua_getfield(L, arg, "kind");
  const char *kind = lua_tostring(L, -1);
  if (!kind || (strcmp(kind, "adam") && strcmp(kind, "sgd"))) {
    ph_fail(L, "no optimizer is called '%s' (adam sgd)", kind ? kind : luaL_typename(L, -1));
  }
  o->kind = strcmp(kind, "adam") ? PH_OPTIM_SGD : PH_OPTIM_ADAM;
  lua_pop(L, 1);
  o->lr = field_number(L, arg, "lr", NAN);
  o->beta1 = field_number(L, arg, "beta1", 0.9);
  o->beta2 = field_number(L, arg, "beta2", 0.999);
  o->eps = field_number(L, arg, "eps", 1e-8);
  o->weight_decay = field_number(L, arg, "weight_decay", 0);
  o->momentum = field_number(L, arg, "momentum", 0);
  o->clip = field_number(L, arg, "clip", 0);
}

/* ---- methods ---- */

static int l_plan_step(lua_State *L) {
  work w;
  ph_optim o;
  ph_result r = {0};
  ph_err err;
  check_work(L, &w);
  check_optim(L, 4, &o);
  if (ph_plan_step(w.box->plan, &w.data, w.row, w.n, &o, &r, &err)) {
    return ph_raise(L, &err);
  }
  push_result(L, &r);
  return 1;
}

static int l_plan_eval(lua_State *L) {
  work w;
  ph_result r = {0};
  ph_err err;
  check_work(L, &w);
  ph_tensor *out = optional_out(L, lua_toboolean(L, 4), w.model->dtype, w.n, features(w.model->output));
  if (ph_plan_eval(w.box->plan, &w.data, w.row, w.n, out, &r, &err)) {
    return ph_raise(L, &err);
  }
  push_result(L, &r);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "out");
  return 1;
}

static int l_plan_grad(lua_State *L) {
  work w;
  ph_result r = {0};
  ph_err err;
  check_work(L, &w);
  ph_tensor *gx = optional_out(L, lua_toboolean(L, 4), w.model->dtype, w.n, features(w.model->input));
  if (ph_plan_grad(w.box->plan, &w.data, w.row, w.n, gx, &r, &err)) {
    return ph_raise(L, &err);
  }
  push_result(L, &r);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "gx");
  return 1;
}

static bool field_true(lua_State *L, int arg, const char *key) {
  lua_getfield(L, arg, key);
  bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

static int l_plan_probe(lua_State *L) {
  static const char *const keys[] = {"segment", "state", "port", "grad", "observe", NULL};
  work w;
  ph_result r = {0};
  ph_err err;
  lua_settop(L, 4);
  check_work(L, &w);
  luaL_checktype(L, 4, LUA_TTABLE);
  ph_check_keys(L, 4, "probe", keys);
  lua_getfield(L, 4, "segment");
  int ok;
  int count = w.model->nsegments;
  lua_Integer segment = lua_tointegerx(L, -1, &ok);
  if (!ok || segment < 1 || segment > count) {
    ph_fail(L, "probe: segment %s is outside 1..%d", luaL_tolstring(L, -1, NULL), count);
  }
  lua_settop(L, 4);
  int64_t steps = w.model->segment[segment - 1].repeat;
  ph_probe p = {.segment = (int)segment - 1};
  p.state = optional_out(L, field_true(L, 4, "state"), PH_F64, w.n, steps + 1);
  p.port = optional_out(L, field_true(L, 4, "port"), PH_F64, w.n, steps);
  p.grad = optional_out(L, field_true(L, 4, "grad"), PH_F64, steps + 1, -1);
  p.observe =
      optional_out(L, field_true(L, 4, "observe"), PH_F64, w.n, steps * w.model->segment[segment - 1].nobserves);
  if (ph_plan_probe(w.box->plan, &w.data, w.row, w.n, &p, &r, &err)) {
    return ph_raise(L, &err);
  }
  push_result(L, &r);
  for (int i = 1; i <= 4; i++) {
    lua_pushvalue(L, 4 + i);
    lua_setfield(L, -2, keys[i]);
  }
  return 1;
}

const luaL_Reg ph_plan_run_methods[] = {
    {"step", l_plan_step}, {"eval", l_plan_eval}, {"grad", l_plan_grad}, {"probe", l_plan_probe}, {NULL, NULL}};
