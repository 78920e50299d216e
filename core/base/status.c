/* status.c - names and texts of the codes, and the one way a message gets into a ph_err. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef ph_err_set /* a macro for the analyzer */

const char *ph_status_name(ph_status code) {
  switch (code) {
#define X(name, value, text) \
  case name: return #name;
    PH_STATUS_TABLE(X)
#undef X
  }
  return "PH_E_?";
}

const char *ph_status_text(ph_status code) {
  switch (code) {
#define X(name, value, text) \
  case name: return text;
    PH_STATUS_TABLE(X)
#undef X
  }
  return "unknown status";
}

/* Control characters come from foreign file names and file contents; a message stays one harmless line. */
static void one_line(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < 0x20 || *text == 0x7f) {
      *text = ' ';
    }
  }
}

/* A cut text ends in "..." so that a reader sees that there was more. */
static void finish(char *text, int wanted) {
  if (wanted >= PH_ERR_TEXT) {
    memcpy(text + PH_ERR_TEXT - 4, "...", 4);
  }
  one_line(text);
}

ph_status ph_err_set(ph_err *err, ph_status code, const char *fmt, ...) {
  if (!err) {
    return code;
  }
  char text[PH_ERR_TEXT]; /* an argument may be err->text itself */
  va_list ap;
  va_start(ap, fmt);
  int wanted = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (wanted < 0) {
    text[0] = '\0';
  }
  finish(text, wanted);
  err->code = code;
  memcpy(err->text, text, sizeof text);
  return code;
}

ph_status ph_err_prefix(ph_err *err, ph_status code, const char *fmt, ...) {
  if (!err) {
    return code;
  }
  char text[PH_ERR_TEXT];
  va_list ap;
  va_start(ap, fmt);
  int used = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (used >= 0 && used < PH_ERR_TEXT) {
    used += snprintf(text + used, sizeof text - (size_t)used, ": %s", err->text);
  }
  finish(text, used);
  memcpy(err->text, text, sizeof text);
  return err->code;
}
