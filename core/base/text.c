/* text.c - see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool make_room(ph_text *t, size_t more) {
  if (t->n + more + 1 <= t->room) {
    return true;
  }
  size_t room = 2 * t->room + more + 256;
  char *grown = ph_mem_grow(t->text, t->n, room, 1);
  if (!grown) {
    t->failed = true;
    return false;
  }
  t->text = grown;
  t->room = room;
  return true;
}

void ph_text_put(ph_text *t, const char *fmt, ...) {
  char piece[512];
  va_list ap;
  va_start(ap, fmt);
  int len = vsnprintf(piece, sizeof piece, fmt, ap);
  va_end(ap);
  size_t n = len < 0 ? 0 : (size_t)len < sizeof piece ? (size_t)len : sizeof piece - 1;
  if (!t->failed && make_room(t, n)) {
    memcpy(t->text + t->n, piece, n);
    t->n += n;
    t->text[t->n] = 0;
  }
}

ph_status ph_text_take(ph_text *t, char **text, size_t *n, ph_err *err) {
  if (!t->failed && !t->text) {
    ph_text_put(t, "%s", "");
  }
  if (t->failed) {
    ph_mem_free(t->text);
    *t = (ph_text){0};
    return ph_err_set(err, PH_E_NOMEM, "out of memory while writing a text");
  }
  *text = t->text;
  if (n) {
    *n = t->n;
  }
  *t = (ph_text){0};
  return PH_OK;
}
