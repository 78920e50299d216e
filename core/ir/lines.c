/* lines.c - the text of a model as lines and words. Any bytes are safe to give: a line is cut into at most 16 words, and every
 * number is range-checked. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

ph_status ph_ir_bad(const ph_ir_lines *l, const char *what) {
  return ph_err_set(l->err, PH_E_PARSE, "line %d: %s%s%s%s", l->line, what, l->words ? ", got '" : "",
                    l->words ? l->word[0] : "", l->words ? "'" : "");
}

/* The end of a table line's second word; NULL for any other line. */
static const char *table_head(const char *start, const char *end) {
  static const char word[] = "table ";
  size_t n = sizeof word - 1;
  if ((size_t)(end - start) <= n || memcmp(start, word, n) != 0) {
    return NULL;
  }
  const char *space = memchr(start + n, ' ', (size_t)(end - start) - n);
  return space ? space : end;
}

static ph_status cut(ph_ir_lines *l) {
  char *save = NULL;
  for (char *w = strtok_r(l->buf, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    if (l->words == PH_IR_WORDS) {
      return ph_ir_bad(l, "too many words");
    }
    l->word[l->words++] = w;
  }
  return l->words ? PH_OK : ph_ir_bad(l, "an empty line is not allowed");
}

ph_status ph_ir_next(ph_ir_lines *l) {
  l->words = 0;
  l->line++;
  if (l->at == l->n) {
    return PH_OK;
  }
  const char *start = l->text + l->at;
  l->end = memchr(start, '\n', l->n - l->at);
  l->rest = l->end ? table_head(start, l->end) : NULL;
  const char *stop = l->rest ? l->rest : l->end;
  if (!l->end || stop - start >= PH_IR_LINE || memchr(start, 0, (size_t)(l->end - start))) {
    return ph_ir_bad(l, "a line must end with a newline, be shorter than 512 bytes and hold no NUL");
  }
  memcpy(l->buf, start, (size_t)(stop - start));
  l->buf[stop - start] = 0;
  l->at += (size_t)(l->end - start) + 1;
  return cut(l);
}

bool ph_ir_is(const ph_ir_lines *l, const char *word) { return l->words > 0 && strcmp(l->word[0], word) == 0; }

bool ph_ir_integer(const char *w, int64_t lo, int64_t hi, int64_t *out) {
  char *end = NULL;
  errno = 0;
  long long v = strtoll(w, &end, 10);
  if (errno || end == w || *end || v < lo || v > hi) {
    return false;
  }
  *out = v;
  return true;
}

bool ph_ir_finite(const char *w, double *out) {
  char *end = NULL;
  double v = strtod(w, &end);
  if (end == w || *end || !isfinite(v)) {
    return false;
  }
  *out = v;
  return true;
}

bool ph_ir_name(const char *w, char out[PH_IR_NAME]) {
  if (strlen(w) >= PH_IR_NAME || !(isalpha((unsigned char)w[0]) || w[0] == '_')) {
    return false;
  }
  for (const char *c = w; *c; c++) {
    if (!isalnum((unsigned char)*c) && *c != '_') {
      return false;
    }
  }
  strcpy(out, w);
  return true;
}

bool ph_ir_shape(const ph_ir_lines *l, int first, ph_shape *out) {
  int64_t v[3] = {0};
  int n = l->words - first;
  for (int i = 0; i < n; i++) {
    if (n < 2 || n > 3 || !ph_ir_integer(l->word[first + i], 1, i + 1 < n ? PH_IR_MAX_POS : 1 << 24, &v[i])) {
      return false;
    }
  }
  if (n < 2 || (n == 3 && (v[1] < 2 || v[0] * v[1] > PH_IR_MAX_POS))) {
    return false;
  }
  *out = n == 2 ? ph_shape_sample(v[0], 1, v[1]) : ph_shape_sample(v[0] * v[1], v[1], v[2]);
  return true;
}

ph_status ph_ir_room(ph_ir_lines *l, const char *what, void **array, int used, int limit, size_t size) {
  if (used == limit) {
    return ph_err_set(l->err, PH_E_LIMIT, "line %d: there are more than %d %s", l->line, limit, what);
  }
  if ((used & (used - 1)) == 0) { /* room is a power of two: grow when full */
    void *grown = ph_mem_grow(*array, (size_t)used * size, used ? 2 * (size_t)used : 1, size);
    if (!grown) {
      return ph_err_set(l->err, PH_E_NOMEM, "out of memory while reading a model");
    }
    *array = grown;
  }
  return PH_OK;
}
