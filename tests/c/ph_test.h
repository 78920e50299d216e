/* ph_test.h - what every C test uses: cmocka, comparison with a reason, the live-bytes fixture, paths of golden files.
 *
 * PH_TEST(fn) runs a test and then fails it when the live blocks or bytes of the core are not what they were before, or
 * when an armed allocation failure was left behind.
 */
#ifndef PH_TEST_H
#define PH_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"

#define PH_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Holds when |want - got| <= atol + rtol |want|, when both are NaN, or when they are equal infinities. `why` is the reason
 * for the tolerance and is printed on failure. */
#define ph_near(want, got, atol, rtol, why) ph_near_at(want, got, atol, rtol, why, #got, __FILE__, __LINE__)

static inline void ph_near_at(double want, double got, double atol, double rtol, const char *why, const char *what,
                              const char *file, int line) {
  if (want == got || (isnan(want) && isnan(got))) {
    return;
  }
  double error = fabs(want - got);
  double allowed = atol + rtol * fabs(want);
  if (error <= allowed && isfinite(error)) {
    return;
  }
  print_error("%s: want %.17g, got %.17g, error %.3g, allowed %.3g (%s)\n", what, want, got, error, allowed, why);
  _fail(file, line);
}

/* The call fails with this code and its text contains `part`. */
#define ph_fails(code_wanted, part, call, err)                       \
  do {                                                               \
    assert_int_equal(code_wanted, call);                             \
    assert_int_equal(code_wanted, (err).code);                       \
    if (!strstr((err).text, part)) {                                 \
      fail_msg("'%s' is not in the message '%s'", part, (err).text); \
    }                                                                \
  } while (0)

#define ph_ok(call) assert_int_equal(PH_OK, call)

static ph_mem_stats ph_live_before;

static inline int ph_live_setup(void **state) {
  (void)state;
  ph_live_before = ph_mem_now();
  return 0;
}

static inline int ph_live_check(void **state) {
  (void)state;
  ph_mem_fail_at(0);
  ph_mem_stats now = ph_mem_now();
  if (now.blocks == ph_live_before.blocks && now.bytes == ph_live_before.bytes) {
    return 0;
  }
  print_error("leak: %lld blocks, %lld bytes\n", (long long)(now.blocks - ph_live_before.blocks),
              (long long)(now.bytes - ph_live_before.bytes));
  return -1;
}

#define PH_TEST(fn) cmocka_unit_test_setup_teardown(fn, ph_live_setup, ph_live_check)

/* Runs `attempt` (a ph_status expression that cleans up after success) with the 1st, 2nd, ... allocation failing, until it
 * succeeds; every failure must be PH_E_NOMEM and leak nothing. Fails when nothing was allocated at all. */
#define ph_each_failed_allocation(attempt)                     \
  do {                                                         \
    ph_mem_stats ph_before = ph_mem_now();                     \
    int ph_n = 0;                                              \
    for (ph_status ph_st = PH_E_NOMEM; ph_st != PH_OK;) {      \
      ph_mem_fail_at(++ph_n);                                  \
      ph_st = (attempt);                                       \
      ph_mem_fail_at(0);                                       \
      assert_true(ph_st == PH_OK || ph_st == PH_E_NOMEM);      \
      assert_int_equal(ph_before.bytes, ph_mem_now().bytes);   \
      assert_int_equal(ph_before.blocks, ph_mem_now().blocks); \
      assert_true(ph_n < 100000);                              \
    }                                                          \
    assert_true(ph_n > 1);                                     \
  } while (0)

/* Path of a file below tests/ ("golden/x.txt"); valid until the fourth next call. */
static inline const char *ph_test_path(const char *name) {
  static char ring[4][1024];
  static unsigned next;
  char *path = ring[next++ % 4];
  snprintf(path, sizeof ring[0], "%s/%s", PHRUN_TEST_DIR, name);
  return path;
}

/* The whole file below tests/, NUL-terminated, *size without the NUL (may be NULL). Fails the test when it cannot be read;
 * free with free(). */
static inline char *ph_test_read(const char *name, size_t *size) {
  FILE *file = fopen(ph_test_path(name), "rb");
  if (!file) {
    fail_msg("cannot open %s", ph_test_path(name));
  }
  char *text = NULL;
  size_t used = 0;
  size_t room = 0;
  do {
    room = room ? 2 * room : 4096;
    text = realloc(text, room + 1);
    assert_non_null(text);
    used += fread(text + used, 1, room - used, file);
  } while (used == room);
  assert_false(ferror(file));
  fclose(file);
  text[used] = '\0';
  if (size) {
    *size = used;
  }
  return text;
}

#endif
