/* bind_tensor_print.c - a tensor as text for a person:
 *
 *   f64 (1000, 1000)  range [-4.97, 5.01]
 *     0.12345  -1.2     0.5    ...    2.25
 *     ...
 *
 * At most eight rows and eight columns of the last two dimensions are shown, and at most eight matrices of a stack. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor_box.h"

enum { SHOWN = 8, HEAD = 5, CELL = 24 };

/* The k-th shown position of n: the first HEAD, then the last SHOWN - 1 - HEAD with -1 ("...") between. */
static int64_t shown(int64_t n, int k) {
  if (n <= SHOWN || k < HEAD)
    return k;
  return k == HEAD ? -1 : n - SHOWN + k;
}

static int shown_count(int64_t n) { return n <= SHOWN ? (int)n : SHOWN; }

static const char *cell(const ph_tensor *t, int64_t i, char buf[CELL]) {
  if (t->dtype == PH_I64)
    snprintf(buf, CELL, "%lld", (long long)((const int64_t *)t->data)[i]);
  else if (t->dtype == PH_F32 || t->dtype == PH_F64)
    snprintf(buf, CELL, "%.5g", ph_tensor_get(t, i) + 0.0);
  else
    snprintf(buf, CELL, "%.0f", ph_tensor_get(t, i));
  return buf;
}

static void add_padded(luaL_Buffer *b, const char *s, int width) {
  for (int k = (int)strlen(s); k < width; k++)
    luaL_addchar(b, ' ');
  luaL_addstring(b, s);
}

/* One matrix (rows x cols) from element `base` on. */
static void add_matrix(luaL_Buffer *b, const ph_tensor *t, int64_t base, int64_t rows, int64_t cols) {
  char buf[CELL];
  int nr = shown_count(rows), nc = shown_count(cols), width[SHOWN] = {0};
  for (int c = 0; c < nc; c++)
    for (int r = 0; r < nr; r++) {
      int64_t i = shown(rows, r), j = shown(cols, c);
      int w = i < 0 || j < 0 ? 3 : (int)strlen(cell(t, base + i * cols + j, buf));
      if (w > width[c])
        width[c] = w;
    }
  for (int r = 0; r < nr; r++) {
    int64_t i = shown(rows, r);
    luaL_addstring(b, "\n");
    for (int c = 0; c < nc; c++) {
      int64_t j = shown(cols, c);
      luaL_addstring(b, "  ");
      add_padded(b, i < 0 || j < 0 ? "..." : cell(t, base + i * cols + j, buf), width[c]);
    }
  }
}

static void add_range(luaL_Buffer *b, const ph_tensor *t) {
  double low = INFINITY, high = -INFINITY;
  int64_t n = ph_tensor_count(t), odd = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = ph_tensor_get(t, i);
    if (!isfinite(x))
      odd++;
    else
      low = fmin(low, x), high = fmax(high, x);
  }
  char text[96];
  if (low <= high)
    snprintf(text, sizeof text, "  range [%.4g, %.4g]", low + 0.0, high + 0.0), luaL_addstring(b, text);
  if (odd)
    snprintf(text, sizeof text, "  %lld not finite", (long long)odd), luaL_addstring(b, text);
}

int l_tensor_tostring(lua_State *L) {
  if (!luaL_checkudata(L, 1, PH_TENSOR) || !*(ph_tensor **)lua_touserdata(L, 1)) {
    lua_pushstring(L, "closed tensor");
    return 1;
  }
  const ph_tensor *t = ph_check_tensor(L, 1);
  char head[128];
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, ph_tensor_describe(t, head, sizeof head));
  add_range(&b, t);
  if (ph_tensor_count(t) > 0) {
    int64_t cols = t->rank >= 1 ? t->dim[t->rank - 1] : 1, rows = t->rank >= 2 ? t->dim[t->rank - 2] : 1;
    int64_t count = ph_tensor_count(t) / (rows * cols);
    for (int m = 0; m < shown_count(count); m++) {
      int64_t at = shown(count, m);
      if (count > 1) {
        snprintf(head, sizeof head, at < 0 ? "\n..." : "\n[%lld]", (long long)at + 1);
        luaL_addstring(&b, head);
      }
      if (at >= 0)
        add_matrix(&b, t, at * rows * cols, rows, cols);
    }
  }
  luaL_pushresult(&b);
  return 1;
}
