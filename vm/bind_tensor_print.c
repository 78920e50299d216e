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

enum { SHOWN = 8, CELL = 24, LINE = 80 };

/* Of n positions at most `most` are shown. The k-th of those: the first ones, -1 ("...") and the last ones. */
static int64_t shown(int64_t n, int most, int k) {
  int head = (most + 1) / 2 + (most > 5);
  if (n <= most || k < head) {
    return k;
  }
  return k == head ? -1 : n - most + k;
}

static int shown_count(int64_t n, int most) { return n <= most ? (int)n : most; }

static const char *cell(const ph_tensor *t, int64_t i, char buf[CELL]) {
  double x = ph_tensor_get(t, i);
  if (t->dtype == PH_I64) {
    snprintf(buf, CELL, "%lld", (long long)((const int64_t *)t->data)[i]);
  } else if (isnan(x)) {
    snprintf(buf, CELL, "nan");
  } else {
    snprintf(buf, CELL, t->dtype == PH_F32 || t->dtype == PH_F64 ? "%.5g" : "%.0f", x + 0.0);
  }
  return buf;
}

static void add_padded(luaL_Buffer *b, const char *s, int width) {
  for (int k = (int)strlen(s); k < width; k++) {
    luaL_addchar(b, ' ');
  }
  luaL_addstring(b, s);
}

/* Width of each shown column when at most `most` are shown; returns the length of a line. */
static int column_widths(const ph_tensor *t, int64_t base, int64_t rows, int64_t cols, int most, int width[SHOWN]) {
  char buf[CELL];
  int nr = shown_count(rows, SHOWN);
  int nc = shown_count(cols, most);
  int line = 0;
  for (int c = 0; c < nc; c++) {
    int64_t j = shown(cols, most, c);
    width[c] = 3;
    for (int r = 0; r < nr; r++) {
      int64_t i = shown(rows, SHOWN, r);
      int w = i < 0 || j < 0 ? 3 : (int)strlen(cell(t, base + i * cols + j, buf));
      if (w > width[c]) {
        width[c] = w;
      }
    }
    line += width[c] + 2;
  }
  return line;
}

/* One matrix (rows x cols) from element `base` on. */
static void add_matrix(luaL_Buffer *b, const ph_tensor *t, int64_t base, int64_t rows, int64_t cols) {
  char buf[CELL];
  int width[SHOWN];
  int most = SHOWN;
  while (column_widths(t, base, rows, cols, most, width) > LINE && most > 3) {
    most--;
  }
  int nr = shown_count(rows, SHOWN);
  int nc = shown_count(cols, most);
  for (int r = 0; r < nr; r++) {
    int64_t i = shown(rows, SHOWN, r);
    luaL_addstring(b, "\n");
    for (int c = 0; c < nc; c++) {
      int64_t j = shown(cols, most, c);
      luaL_addstring(b, "  ");
      add_padded(b, i < 0 || j < 0 ? "..." : cell(t, base + i * cols + j, buf), width[c]);
    }
  }
}

static void add_range(luaL_Buffer *b, const ph_tensor *t) {
  double low = INFINITY;
  double high = -INFINITY;
  int64_t n = ph_tensor_count(t);
  int64_t odd = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = ph_tensor_get(t, i);
    if (!isfinite(x)) {
      odd++;
    } else {
      low = fmin(low, x);
      high = fmax(high, x);
    }
  }
  char text[96];
  if (low <= high) {
    snprintf(text, sizeof text, "  range [%.4g, %.4g]", low + 0.0, high + 0.0);
    luaL_addstring(b, text);
  }
  if (odd) {
    snprintf(text, sizeof text, "  %lld not finite", (long long)odd);
    luaL_addstring(b, text);
  }
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
    int64_t cols = t->rank >= 1 ? t->dim[t->rank - 1] : 1;
    int64_t rows = t->rank >= 2 ? t->dim[t->rank - 2] : 1;
    int64_t count = ph_tensor_count(t) / (rows * cols);
    for (int m = 0; m < shown_count(count, SHOWN); m++) {
      int64_t at = shown(count, SHOWN, m);
      if (count > 1) {
        snprintf(head, sizeof head, at < 0 ? "\n..." : "\n[%lld]", (long long)at + 1);
        luaL_addstring(&b, head);
      }
      if (at >= 0) {
        add_matrix(&b, t, at * rows * cols, rows, cols);
      }
    }
  }
  luaL_pushresult(&b);
  return 1;
}
