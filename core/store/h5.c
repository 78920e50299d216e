/* h5.c - start-up, names and errors of the HDF5 library. See h5.h. */
#include "store/h5.h"

#include <hdf5.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Why the last failing call failed. HDF5 clears its error stack at the next call, even one that only cleans up, so the
 * reason is taken down when it arises. */
static struct {
  char text[128];
  bool memory;
} reason;

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *ctx) {
  (void)ctx;
  if (n == 0) {
    snprintf(reason.text, sizeof reason.text, "%s", e->desc ? e->desc : "");
  }
  if (e->min_num == H5E_NOSPACE || e->min_num == H5E_CANTALLOC) {
    reason.memory = true;
  }
  return 0;
}

/* HDF5 calls this where it would print. */
static herr_t note_reason(hid_t stack, void *ctx) {
  reason.memory = false;
  return H5Ewalk2(stack, H5E_WALK_UPWARD, innermost, ctx);
}

void ph_h5_start(void) {
  static bool started;
  if (started) {
    return;
  }
  started = true;
  H5dont_atexit(); /* nothing to flush: no file of ours is on disk, and a library that unwinds at exit can crash there */
  H5open();
  H5Eset_auto2(H5E_DEFAULT, note_reason, NULL);
  H5PLset_loading_state(0);
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *ph_store_hdf5(void) { return TEXT(H5_VERS_MAJOR) "." TEXT(H5_VERS_MINOR) "." TEXT(H5_VERS_RELEASE); }

void ph_h5_name(char buf[64]) {
  static atomic_ulong count;
  snprintf(buf, 64, "/dev/null/image-%lu", atomic_fetch_add(&count, 1) + 1);
}

ph_status ph_h5_fail(ph_err *err, ph_status code, const char *fmt, ...) {
  char what[PH_ERR_TEXT];
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  if (reason.memory && code == PH_E_INTERNAL) {
    code = PH_E_NOMEM;
  }
  return ph_err_set(err, code, "%s: %s", what, reason.text[0] ? reason.text : "no reason given");
}

bool ph_h5_path_ok(const char *path) {
  if (path[0] != '/') {
    return false;
  }
  if (path[1] == '\0') {
    return true;
  }
  for (const char *p = path; *p;) {
    const char *part = ++p; /* behind the slash */
    p = strchrnul(p, '/');
    size_t n = (size_t)(p - part);
    if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.')) {
      return false;
    }
  }
  return true;
}
