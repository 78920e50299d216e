/* bind_la.c - linear algebra in float64 (base/la.h) as native.la; other element types are converted first. */
#include <limits.h>
#include <string.h>

#include "base/la.h"
#include "host.h"
#include "tensor_box.h"

/* The tensor at `arg` as f64, replaced on the stack when it had to be converted. rank 1 or 2 (min_rank 1), else exactly 2. */
static const ph_tensor *check_f64(lua_State *L, int arg, int min_rank) {
  const ph_tensor *t = ph_check_tensor(L, arg);
  char have[96];
  if (t->rank < min_rank || t->rank > 2) {
    ph_fail(L, "the argument must be a matrix, got %s", ph_tensor_describe(t, have, sizeof have));
  }
  if (t->dim[0] > 46340 || t->dim[1] > 46340) {
    ph_fail(L, "%s is too large to factor", ph_tensor_describe(t, have, sizeof have));
  }
  if (t->dtype == PH_F64) {
    return t;
  }
  ph_tensor **made = ph_push_tensor(L);
  ph_err err;
  if (ph_tensor_cast(made, t, PH_F64, &err)) {
    ph_raise(L, &err);
  }
  ph_tensor_ready(L, 1);
  lua_replace(L, arg);
  return ph_check_tensor(L, arg);
}

static const ph_tensor *check_square(lua_State *L, int arg) {
  const ph_tensor *t = check_f64(L, arg, 2);
  char have[96];
  if (t->dim[0] != t->dim[1]) {
    ph_fail(L, "the argument must be a square matrix, got %s", ph_tensor_describe(t, have, sizeof have));
  }
  return t;
}

static double *new_f64(lua_State *L, int rank, int64_t rows, int64_t cols) {
  int64_t dim[2] = {rows, cols};
  return ph_new_tensor(L, PH_F64, rank, dim)->data;
}

/* Raises when st is a failure, else returns the n results on top of the stack. */
static int finish(lua_State *L, ph_status st, const ph_err *err, int n) { return st ? ph_raise(L, err) : n; }

static int l_la_eigh(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  int n = (int)A->dim[0];
  double *w = new_f64(L, 1, n, 1);
  double *V = new_f64(L, 2, n, n);
  ph_err err;
  return finish(L, ph_la_eigh(n, A->data, w, V, &err), &err, 2);
}

static int l_la_eigh_gen(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  const ph_tensor *B = check_square(L, 2);
  int n = (int)A->dim[0];
  if (B->dim[0] != n) {
    ph_fail(L, "eigh_gen: sizes %d and %d differ", n, (int)B->dim[0]);
  }
  double *w = new_f64(L, 1, n, 1);
  ph_err err;
  return finish(L, ph_la_eigh_gen(n, A->data, B->data, w, &err), &err, 1);
}

static int l_la_eig(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  int n = (int)A->dim[0];
  double *re = new_f64(L, 1, n, 1);
  double *im = new_f64(L, 1, n, 1);
  ph_err err;
  return finish(L, ph_la_eig(n, A->data, re, im, &err), &err, 2);
}

static int l_la_svd(lua_State *L) {
  const ph_tensor *A = check_f64(L, 1, 2);
  int m = (int)A->dim[0];
  int n = (int)A->dim[1];
  int k = m < n ? m : n;
  double *s = new_f64(L, 1, k, 1);
  double *U = new_f64(L, 2, m, k);
  double *Vt = new_f64(L, 2, k, n);
  ph_err err;
  return finish(L, ph_la_svd(m, n, A->data, s, U, Vt, &err), &err, 3);
}

static int l_la_logdet(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  double logabs = 0;
  int sign = 0;
  ph_err err;
  if (ph_la_logdet((int)A->dim[0], A->data, &logabs, &sign, &err)) {
    return ph_raise(L, &err);
  }
  lua_pushnumber(L, logabs);
  lua_pushinteger(L, sign);
  return 2;
}

static int l_la_solve(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  const ph_tensor *B = check_f64(L, 2, 1);
  int n = (int)A->dim[0];
  int m = B->rank == 1 ? 1 : (int)B->dim[1];
  if (B->dim[0] != n) {
    ph_fail(L, "solve: %d equations, %d right-hand rows", n, (int)B->dim[0]);
  }
  double *X = new_f64(L, B->rank, n, m);
  ph_err err;
  return finish(L, ph_la_solve(n, m, A->data, B->data, X, &err), &err, 1);
}

static int l_la_inverse(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  int n = (int)A->dim[0];
  double *X = new_f64(L, 2, n, n);
  ph_err err;
  return finish(L, ph_la_inverse(n, A->data, X, &err), &err, 1);
}

static int l_la_cholesky(lua_State *L) {
  const ph_tensor *A = check_square(L, 1);
  int n = (int)A->dim[0];
  double *F = new_f64(L, 2, n, n);
  bool definite = false;
  ph_err err;
  if (ph_la_cholesky(n, A->data, F, &definite, &err)) {
    return ph_raise(L, &err);
  }
  if (!definite) {
    lua_pushnil(L);
  }
  return 1;
}

static int l_la_qr(lua_State *L) {
  const ph_tensor *A = check_f64(L, 1, 2);
  int m = (int)A->dim[0];
  int n = (int)A->dim[1];
  if (m < n) {
    ph_fail(L, "qr: %d rows are fewer than %d columns", m, n);
  }
  double *Q = new_f64(L, 2, m, n);
  double *R = new_f64(L, 2, n, n);
  ph_err err;
  return finish(L, ph_la_qr(m, n, A->data, Q, R, &err), &err, 2);
}

static ph_la_info blas;

ph_status ph_host_start_blas(ph_err *err) { return ph_la_start(&blas, err); }

static int l_la_info(lua_State *L) {
  lua_createtable(L, 0, 7);
  lua_pushstring(L, blas.config);
  lua_setfield(L, -2, "config");
  lua_pushstring(L, blas.core);
  lua_setfield(L, -2, "core");
  lua_pushstring(L, blas.wanted);
  lua_setfield(L, -2, "wanted");
  lua_pushstring(L, blas.origin);
  lua_setfield(L, -2, "origin");
  lua_pushinteger(L, blas.threads);
  lua_setfield(L, -2, "threads");
  lua_pushnumber(L, blas.selftest);
  lua_setfield(L, -2, "selftest");
  lua_pushboolean(L, blas.ok);
  lua_setfield(L, -2, "ok");
  return 1;
}

static int l_sgemm_rate(lua_State *L) {
  lua_Integer n = luaL_optinteger(L, 1, 64);
  double seconds = luaL_optnumber(L, 2, 0.1);
  if (n < 1 || n > 8192 || !(seconds > 0 && seconds <= 10)) {
    ph_fail(L, "sgemm_rate: the size must be 1 to 8192, the time at most 10 seconds");
  }
  lua_pushnumber(L, ph_la_sgemm_rate((int)n, seconds));
  return 1;
}

void ph_bind_la(lua_State *L) {
  static const luaL_Reg la[] = {{"eigh", l_la_eigh},       {"eigh_gen", l_la_eigh_gen},
                                {"eig", l_la_eig},         {"svd", l_la_svd},
                                {"logdet", l_la_logdet},   {"solve", l_la_solve},
                                {"inverse", l_la_inverse}, {"cholesky", l_la_cholesky},
                                {"qr", l_la_qr},           {NULL, NULL}};
  static const luaL_Reg functions[] = {{"la_info", l_la_info}, {"sgemm_rate", l_sgemm_rate}, {NULL, NULL}};
  luaL_newlib(L, la);
  lua_setfield(L, -2, "la");
  luaL_setfuncs(L, functions, 0);
}
