/* bind_os.c - time, terminal, environment, interrupts and unbuffered output for lua/ph. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "host.h"
#include "os_box.h"

int ph_soft_errno(lua_State *L, const char *what) {
  ph_err err;
  ph_err_set(&err, PH_E_IO, "%s: %s", what, strerror(errno));
  return ph_soft(L, &err);
}

static double clock_seconds(clockid_t id) {
  struct timespec ts;
  clock_gettime(id, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int l_now(lua_State *L) {
  lua_pushnumber(L, clock_seconds(CLOCK_MONOTONIC));
  return 1;
}

static int l_time(lua_State *L) {
  lua_pushnumber(L, clock_seconds(CLOCK_REALTIME));
  return 1;
}

/* native.date(t): ISO 8601 in UTC, "2024-05-01T12:00:00Z". */
static int l_date(lua_State *L) {
  double t = luaL_optnumber(L, 1, clock_seconds(CLOCK_REALTIME));
  if (!(t >= -62135596800.0 && t < 253402300800.0)) {
    ph_fail(L, "date: %.14g is outside the years 1 to 9999", t);
  }
  time_t whole = (time_t)floor(t);
  struct tm tm;
  char text[40];
  gmtime_r(&whole, &tm);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  lua_pushstring(L, text);
  return 1;
}

/* native.sleep(seconds): returns early, false, when a signal arrives. */
static int l_sleep(lua_State *L) {
  double s = luaL_checknumber(L, 1);
  if (!(s >= 0 && s <= 86400)) {
    ph_fail(L, "sleep: %.14g is outside 0..86400 seconds", s);
  }
  struct timespec ts = {(time_t)s, (long)((s - floor(s)) * 1e9)};
  lua_pushboolean(L, nanosleep(&ts, NULL) == 0);
  return 1;
}

static int l_isatty(lua_State *L) {
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

/* Width of the terminal at fd; else $COLUMNS; else 80. */
static int l_columns(lua_State *L) {
  struct winsize w;
  int columns = 0;
  if (ioctl((int)luaL_optinteger(L, 1, 1), TIOCGWINSZ, &w) == 0) {
    columns = w.ws_col;
  }
  const char *env = getenv("COLUMNS");
  if (columns <= 0 && env) {
    columns = atoi(env);
  }
  lua_pushinteger(L, columns > 0 ? columns : 80);
  return 1;
}

static int l_getenv(lua_State *L) {
  lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
  return 1;
}

int ph_write_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t k = write(fd, bytes, n);
    if (k < 0 && errno == EAGAIN) {
      struct pollfd p = {fd, POLLOUT, 0};
      poll(&p, 1, 1000);
    } else if (k < 0 && errno != EINTR) {
      return -1;
    } else if (k > 0) {
      bytes += k;
      n -= (size_t)k;
    }
  }
  return 0;
}

static int output_lost;

int ph_host_output_lost(void) { return output_lost; }

/* native.write(fd, text): true; false when nobody reads any more; nil, message, code otherwise. */
static int l_write(lua_State *L) {
  size_t n;
  int fd = (int)luaL_checkinteger(L, 1);
  const char *text = luaL_checklstring(L, 2, &n);
  if (fd < 1) {
    ph_fail(L, "write: the descriptor must be at least 1, got %d", fd);
  }
  fflush(stdout); /* keep the order with what Lua's print has buffered */
  int failed = ph_write_all(fd, text, n);
  if (failed && fd == 1 && errno != EPIPE && !output_lost) {
    output_lost = errno;
  }
  if (failed && errno != EPIPE) {
    return ph_soft_errno(L, fd == 1 ? "standard output" : fd == 2 ? "standard error" : "write");
  }
  lua_pushboolean(L, !failed);
  return 1;
}

static int l_interrupted(lua_State *L) {
  lua_pushboolean(L, ph_interrupt_get());
  ph_interrupt_set(0);
  return 1;
}

static int l_interrupt_clear(lua_State *L) {
  (void)L;
  ph_interrupt_set(0);
  return 0;
}

static int l_interrupt_count(lua_State *L) {
  lua_pushinteger(L, ph_signals_count());
  return 1;
}

/* native.interrupt_lua(on): Ctrl-C also stops running Lua code (the REPL); otherwise it is only a flag (a run saves first). */
static int l_interrupt_lua(lua_State *L) {
  ph_signals_break_lua(lua_toboolean(L, 1));
  return 0;
}

void ph_bind_os(lua_State *L) {
  static const luaL_Reg functions[] = {{"now", l_now},
                                       {"time", l_time},
                                       {"date", l_date},
                                       {"sleep", l_sleep},
                                       {"isatty", l_isatty},
                                       {"columns", l_columns},
                                       {"getenv", l_getenv},
                                       {"write", l_write},
                                       {"interrupted", l_interrupted},
                                       {"interrupt_clear", l_interrupt_clear},
                                       {"interrupt_count", l_interrupt_count},
                                       {"interrupt_lua", l_interrupt_lua},
                                       {"machine", l_machine},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  luaL_setfuncs(L, ph_proc_functions, 0);
}
