/* status.h - what a fallible function returns and where it says why.
 *
 * A fallible function returns PH_OK or a negative code, leaves its outputs untouched on failure, and fills the caller's
 * `ph_err` without allocating. A NULL `err` is allowed and means "the code is enough". There is no global last error.
 * Asserts are for our own bugs; whatever a user, a spec or a file can cause is a status.
 */
#ifndef PH_BASE_STATUS_H
#define PH_BASE_STATUS_H

#define PH_MUST_CHECK __attribute__((warn_unused_result))
#define PH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* One table gives the enum, the names and the texts. */
#define PH_STATUS_TABLE(X)                            \
  X(PH_OK, 0, "ok")                                   \
  X(PH_E_NOMEM, -1, "out of memory")                  \
  X(PH_E_ARG, -2, "invalid argument")                 \
  X(PH_E_SHAPE, -3, "shapes do not fit")              \
  X(PH_E_DTYPE, -4, "wrong element type")             \
  X(PH_E_PARSE, -5, "malformed text")                 \
  X(PH_E_IO, -6, "input or output failed")            \
  X(PH_E_FORMAT, -7, "malformed file")                \
  X(PH_E_NONFINITE, -8, "not a finite number")        \
  X(PH_E_SINGULAR, -9, "matrix is singular")          \
  X(PH_E_CONVERGE, -10, "iteration did not converge") \
  X(PH_E_LIMIT, -11, "limit exceeded")                \
  X(PH_E_INTERRUPTED, -12, "interrupted")             \
  X(PH_E_EXISTS, -13, "already exists")               \
  X(PH_E_NOTFOUND, -14, "not found")                  \
  X(PH_E_LOCKED, -15, "in use by another process")    \
  X(PH_E_INTERNAL, -16, "internal error")

typedef enum ph_status {
#define X(name, value, text) name = value,
  PH_STATUS_TABLE(X)
#undef X
} ph_status;

enum { PH_ERR_TEXT = 512 };

/* Filled by a failing function; owned by the caller; no memory behind it. */
typedef struct ph_err {
  ph_status code;
  char text[PH_ERR_TEXT];
} ph_err;

/* "PH_E_IO" for a code; "PH_E_?" for a number that is none. */
const char *ph_status_name(ph_status code);

/* "input or output failed" for a code. */
const char *ph_status_text(ph_status code);

/* Fills `err` (if not NULL) with one formatted line, cut to PH_ERR_TEXT, and returns `code`. */
ph_status ph_err_set(ph_err *err, ph_status code, const char *fmt, ...) PH_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* it sees one file at a time and would try paths on which a failure returns PH_OK */
#define ph_err_set(err, code, ...) (ph_err_set(err, code, __VA_ARGS__), (code))
#endif

/* Puts "prefix: " before the text already in `err`; returns err->code (or `code` if err is NULL). */
ph_status ph_err_prefix(ph_err *err, ph_status code, const char *fmt, ...) PH_PRINTF(3, 4);

#endif
