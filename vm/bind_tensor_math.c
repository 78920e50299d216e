/* bind_tensor_math.c - arithmetic and reductions of tensors in the REPL and in laws. Products run through the same kernel table
 * as compiled streams (kernels/kern.h), so their bits agree. Not on the training path. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "kernels/kern.h"
#include "tensor_box.h"

static const ph_tensor *check_float(lua_State *L, int arg) {
  const ph_tensor *t = ph_check_tensor(L, arg);
  if (t->dtype != PH_F32 && t->dtype != PH_F64) {
    ph_fail(L, "arithmetic needs f32 or f64, this tensor is %s (cast it)", ph_dtype_name(t->dtype));
  }
  return t;
}

/* A value that is neither number nor tensor but has its own metamethod (a symbol of a traced block) decides itself. */
static bool other_decides(lua_State *L, const char *event, lua_CFunction self) {
  for (int arg = 1; arg <= 2; arg++) {
    if ((lua_type(L, arg) != LUA_TTABLE && lua_type(L, arg) != LUA_TUSERDATA) || luaL_testudata(L, arg, PH_TENSOR)) {
      continue;
    }
    if (luaL_getmetafield(L, arg, event) == LUA_TNIL) {
      continue;
    }
    if (lua_tocfunction(L, -1) == self) {
      lua_pop(L, 1);
      continue;
    }
    lua_insert(L, 1);
    lua_settop(L, 3);
    lua_call(L, 2, 1);
    return true;
  }
  return false;
}

static void check_alike(lua_State *L, const char *op, const ph_tensor *a, const ph_tensor *b) {
  char sa[96];
  char sb[96];
  if (a->dtype == b->dtype && ph_tensor_same_shape(a, b)) {
    return;
  }
  ph_fail(L, "%s: %s and %s do not fit", op, ph_tensor_describe(a, sa, sizeof sa),
          ph_tensor_describe(b, sb, sizeof sb));
}

#define EACH(type, sign)                                 \
  for (int64_t i = 0; i < n; i++) {                      \
    const double x = a ? ((const type *)a->data)[i] : s; \
    const double y = b ? ((const type *)b->data)[i] : s; \
    ((type *)r->data)[i] = (type)(x sign y);             \
  }
#define EACH_OF(type)            \
  switch (op) {                  \
  case '+': EACH(type, +) break; \
  case '-': EACH(type, -) break; \
  case '*': EACH(type, *) break; \
  default: EACH(type, /)         \
  }

/* r = a op b, one of them NULL for the number s. Computed in double and rounded once: for + - * / the same as in float32. */
static void elementwise(ph_tensor *r, char op, const ph_tensor *a, const ph_tensor *b, double s) {
  int64_t n = ph_tensor_count(r);
  if (r->dtype == PH_F32) {
    s = (float)s;
    EACH_OF(float)
  } else {
    EACH_OF(double)
  }
}

static int binary(lua_State *L, const char *name, char op) {
  bool na = lua_type(L, 1) == LUA_TNUMBER;
  bool nb = lua_type(L, 2) == LUA_TNUMBER;
  const ph_tensor *a = na ? NULL : check_float(L, 1);
  const ph_tensor *b = nb ? NULL : check_float(L, 2);
  if (a && b) {
    check_alike(L, name, a, b);
  }
  const ph_tensor *like = a ? a : b;
  if (!like) {
    ph_fail(L, "%s: one argument must be a tensor, got two numbers", name);
  }
  double s = na ? lua_tonumber(L, 1) : nb ? lua_tonumber(L, 2) : 0;
  elementwise(ph_new_tensor(L, like->dtype, like->rank, like->dim), op, a, b, s);
  return 1;
}

static int l_add(lua_State *L) { return other_decides(L, "__add", l_add) ? 1 : binary(L, "+", '+'); }
static int l_sub(lua_State *L) { return other_decides(L, "__sub", l_sub) ? 1 : binary(L, "-", '-'); }
static int l_div(lua_State *L) { return other_decides(L, "__div", l_div) ? 1 : binary(L, "/", '/'); }
static int l_tensor_mul(lua_State *L) { return binary(L, "mul", '*'); }

static int l_unm(lua_State *L) {
  lua_settop(L, 1);
  lua_pushnumber(L, -1);
  return binary(L, "-", '*');
}

/* ---- products ---- */

/* C (m,n) = A (m,k) B (k,n), in row blocks short enough that Ctrl-C is seen. False when interrupted. */
static bool gemm(const ph_kern *kern, size_t size, int64_t m, int64_t n, int64_t k, const char *A, const char *B,
                 char *C) {
  int64_t rows = n * k > 0 ? 500000000 / (n * k) + 16 : m + 1;
  rows -= rows % 16;
  for (int64_t i = 0; i < m; i += rows) {
    int64_t take = m - i < rows ? m - i : rows;
    kern->gemm(take, n, k, A + (size_t)(i * k) * size, k, 1, B, n, NULL, 0, NULL, C + (size_t)(i * n) * size, n);
    if (ph_interrupt_get()) {
      return false;
    }
  }
  return true;
}

static int product(lua_State *L, const ph_tensor *a, const ph_tensor *b) {
  bool fits =
      a->dtype == b->dtype && ((a->rank == 2 && (b->rank == 2 || b->rank == 1) && a->dim[1] == b->dim[0]) ||
                               (a->rank == 3 && b->rank == 3 && a->dim[0] == b->dim[0] && a->dim[2] == b->dim[1]));
  char sa[96];
  char sb[96];
  if (!fits) {
    ph_fail(L, "*: no product of %s and %s%s", ph_tensor_describe(a, sa, sizeof sa),
            ph_tensor_describe(b, sb, sizeof sb),
            a->dtype == b->dtype && ph_tensor_same_shape(a, b) ? " (elementwise: a:mul(b))" : "");
  }
  int r = a->rank;
  int64_t count = r == 3 ? a->dim[0] : 1;
  int64_t m = a->dim[r - 2];
  int64_t k = a->dim[r - 1];
  int64_t n = b->rank == 1 ? 1 : b->dim[r - 1];
  int64_t dim[PH_RANK_MAX] = {r == 3 ? count : m, r == 3 ? m : n, n, 1};
  ph_tensor *c = ph_new_tensor(L, a->dtype, b->rank, dim);
  size_t size = ph_dtype_size(a->dtype);
  const ph_kern *kern = ph_kern_get(a->dtype);
  for (int64_t l = 0; l < count; l++) {
    if (!gemm(kern, size, m, n, k, (const char *)a->data + (size_t)(l * m * k) * size,
              (const char *)b->data + (size_t)(l * k * n) * size, (char *)c->data + (size_t)(l * m * n) * size)) {
      ph_fail(L, "interrupted");
    }
  }
  return 1;
}

static int l_mul(lua_State *L) {
  if (other_decides(L, "__mul", l_mul)) {
    return 1;
  }
  if (lua_type(L, 1) == LUA_TNUMBER || lua_type(L, 2) == LUA_TNUMBER) {
    return binary(L, "*", '*');
  }
  return product(L, check_float(L, 1), check_float(L, 2));
}

/* ---- reductions ---- */

/* rows x cols norms of t into out: the kernel's scaled norm for floats, converted first otherwise. */
static void norms(lua_State *L, const ph_tensor *t, int64_t rows, int64_t cols, double *out) {
  if (t->dtype != PH_F32 && t->dtype != PH_F64) {
    ph_tensor **made = ph_push_tensor(L);
    ph_err err;
    if (ph_tensor_cast(made, t, PH_F64, &err)) {
      ph_raise(L, &err);
    }
    ph_tensor_ready(L, 1);
    t = *made;
    lua_insert(L, 1);
  }
  ph_kern_get(t->dtype)->rownorm(rows, cols, t->data, cols, out);
}

static int l_tensor_norm(lua_State *L) {
  double out = 0;
  const ph_tensor *t = ph_check_tensor(L, 1);
  norms(L, t, 1, ph_tensor_count(t), &out);
  lua_pushnumber(L, out);
  return 1;
}

static int l_tensor_rownorms(lua_State *L) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  if (t->rank == 0) {
    ph_fail(L, "rownorms: a scalar has no rows");
  }
  ph_tensor *r = ph_new_tensor(L, PH_F64, t->rank - 1, t->dim);
  norms(L, t, ph_tensor_count(r), t->dim[t->rank - 1], r->data);
  return 1;
}

/* Neumaier's sum: the error does not grow with the count. A sum that overflows or meets Inf or NaN is left as it is. */
static double sum(const ph_tensor *t) {
  double s = 0;
  double c = 0;
  for (int64_t i = 0, n = ph_tensor_count(t); i < n; i++) {
    double x = ph_tensor_get(t, i);
    double next = s + x;
    c += fabs(s) >= fabs(x) ? (s - next) + x : (x - next) + s;
    s = next;
  }
  return isfinite(c) ? s + c : s;
}

static int l_tensor_sum(lua_State *L) {
  lua_pushnumber(L, sum(ph_check_tensor(L, 1)));
  return 1;
}

static const ph_tensor *check_filled(lua_State *L, const char *what) {
  const ph_tensor *t = ph_check_tensor(L, 1);
  if (ph_tensor_count(t) == 0) {
    ph_fail(L, "%s: the tensor is empty", what);
  }
  return t;
}

static int l_tensor_mean(lua_State *L) {
  const ph_tensor *t = check_filled(L, "mean");
  const double n = (double)ph_tensor_count(t);
  double mean = sum(t) / n;
  if (!isfinite(mean)) { /* the sum may overflow where the mean does not */
    mean = 0;
    for (int64_t i = 0; i < ph_tensor_count(t); i++) {
      mean += ph_tensor_get(t, i) / n;
    }
  }
  lua_pushnumber(L, mean);
  return 1;
}

/* Storage index of the smallest (sign 1) or largest (-1) element; the first NaN if there is one. */
static int64_t extreme(const ph_tensor *t, double sign) {
  int64_t at = 0;
  int64_t n = ph_tensor_count(t);
  double best = sign * ph_tensor_get(t, 0);
  for (int64_t i = 0; i < n; i++) {
    double x = sign * ph_tensor_get(t, i);
    if (isnan(x)) {
      return i;
    }
    if (x < best) {
      best = x;
      at = i;
    }
  }
  return at;
}

static int l_tensor_min(lua_State *L) {
  const ph_tensor *t = check_filled(L, "min");
  ph_push_element(L, t, extreme(t, 1));
  return 1;
}

static int l_tensor_max(lua_State *L) {
  const ph_tensor *t = check_filled(L, "max");
  ph_push_element(L, t, extreme(t, -1));
  return 1;
}

static int l_tensor_first_nonfinite(lua_State *L) {
  int64_t i = ph_tensor_first_nonfinite(ph_check_tensor(L, 1));
  if (i < 0) {
    lua_pushnil(L);
  } else {
    lua_pushinteger(L, i + 1);
  }
  return 1;
}

static int by_value(const void *pa, const void *pb) {
  double a = *(const double *)pa;
  double b = *(const double *)pb;
  if (isnan(a) || isnan(b)) {
    return (isnan(a) != 0) - (isnan(b) != 0);
  }
  return (a > b) - (a < b);
}

static int l_tensor_quantile(lua_State *L) {
  const ph_tensor *t = check_filled(L, "quantile");
  double q = luaL_checknumber(L, 2);
  if (!(q >= 0 && q <= 1)) {
    ph_fail(L, "quantile: %.14g is outside 0..1", q);
  }
  ph_tensor **sorted = ph_push_tensor(L);
  ph_err err;
  if (ph_tensor_cast(sorted, t, PH_F64, &err)) {
    return ph_raise(L, &err);
  }
  ph_tensor_ready(L, 1);
  double *x = (*sorted)->data;
  int64_t n = ph_tensor_count(t);
  qsort(x, (size_t)n, sizeof *x, by_value);
  double place = q * (double)(n - 1);
  double below = floor(place);
  double part = place - below;
  int64_t i = (int64_t)below;
  lua_pushnumber(L, part > 0 ? x[i] + part * (x[i + 1] - x[i]) : x[i]);
  return 1;
}

const luaL_Reg ph_tensor_math_meta[] = {{"__add", l_add}, {"__sub", l_sub}, {"__mul", l_mul},
                                        {"__div", l_div}, {"__unm", l_unm}, {NULL, NULL}};

const luaL_Reg ph_tensor_math_methods[] = {
    {"mul", l_tensor_mul},           {"norm", l_tensor_norm},
    {"rownorms", l_tensor_rownorms}, {"sum", l_tensor_sum},
    {"mean", l_tensor_mean},         {"min", l_tensor_min},
    {"max", l_tensor_max},           {"first_nonfinite", l_tensor_first_nonfinite},
    {"quantile", l_tensor_quantile}, {NULL, NULL}};
