/* text.h - a text that grows as it is written. A failed allocation is remembered and told once, at the end. */
#ifndef PH_BASE_TEXT_H
#define PH_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Starts as { 0 }. text: NUL-terminated, of ph_mem_new; owned by whoever takes it. */
typedef struct ph_text {
  char *text;
  size_t n, room;
  bool failed;
} ph_text;

/* Appends one formatted piece, at most 511 bytes of it. Does nothing after a failure. */
void ph_text_put(ph_text *t, const char *fmt, ...) PH_PRINTF(2, 3);

/* The finished text; PH_E_NOMEM (and nothing is left) when an allocation failed. n may be NULL. */
ph_status ph_text_take(ph_text *t, char **text, size_t *n, ph_err *err) PH_MUST_CHECK;

#endif
