/* signals.c - what SIGINT, SIGTERM, SIGHUP, SIGPIPE and the watch over specs do.
 *
 * SIGINT, SIGTERM and SIGHUP (the terminal is gone) set the flag that native loops poll (base/pool.h) and that lua/ph asks for; a run then saves and ends by
 * itself. While the REPL runs Lua code, SIGINT also plants a hook that raises "interrupted". When the flag of one SIGINT has
 * not been seen by anybody and another comes, the program ends with 130: native code that cannot stop must not hold the
 * terminal. Signals that come together (the terminal's and a parent's) count once. */
#include <errno.h>
#include <lua.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "host.h"

static lua_State *state;
static void (*stop_now)(int code);
static volatile sig_atomic_t break_lua;
static volatile sig_atomic_t count;
static volatile sig_atomic_t redraw;
static volatile int64_t first_ms; /* when the flag was set that nobody has seen yet */

enum { TOGETHER_MS = 150 };

static int64_t now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void raise_interrupted(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  ph_interrupt_set(0);
  lua_pushliteral(L, "interrupted");
  lua_error(L);
}

/* lua_sethook may be called from a signal handler. A limited spec has its own hook, which looks at the flag. */
static void on_interrupt(int sig) {
  int saved = errno;
  int64_t now = now_ms();
  count++;
  if (sig == SIGINT && ph_interrupt_get() && now - first_ms > TOGETHER_MS) {
    stop_now(130);
  }
  if (!ph_interrupt_get()) {
    first_ms = now;
  }
  ph_interrupt_set(1);
  if (break_lua && sig == SIGINT && !ph_limit_active()) {
    lua_sethook(state, raise_interrupted, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
  }
  errno = saved;
}

static void say(const char *text) {
  ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
  (void)ignored;
}

static void on_alarm(int sig) {
  (void)sig;
  if (!ph_limit_stuck()) {
    return;
  }
  say("phrun: ");
  say(ph_limit_where());
  say(": stuck in one library call (an endless pattern or finalizer?)\n");
  stop_now(2);
}

static void on_redraw(int sig) {
  (void)sig;
  redraw = 1;
}

/* No SA_RESTART for interrupts: a blocking read or wait must return so that the flag is seen. */
static void handle(int sig, void (*fn)(int), int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = fn;
  a.sa_flags = flags;
  sigemptyset(&a.sa_mask);
  sigaction(sig, &a, NULL);
}

void ph_signals_start(lua_State *L, void (*stop)(int code)) {
  state = L;
  stop_now = stop;
  handle(SIGINT, on_interrupt, 0);
  handle(SIGTERM, on_interrupt, 0);
  if (signal(SIGHUP, SIG_IGN) != SIG_IGN) { /* nohup: stay alive */
    handle(SIGHUP, on_interrupt, 0);
  }
  handle(SIGPIPE, SIG_IGN, 0);
  handle(SIGXFSZ, SIG_IGN, 0); /* ulimit -f: the write fails, as on a full disk */
  handle(SIGALRM, on_alarm, SA_RESTART);
  handle(SIGWINCH, on_redraw, SA_RESTART); /* poll returns anyway */
  handle(SIGCONT, on_redraw, SA_RESTART);
}

void ph_signals_break_lua(bool on) {
  break_lua = on;
  if (!on && lua_gethook(state) == raise_interrupted) {
    lua_sethook(state, NULL, 0, 0);
  }
}

int ph_signals_count(void) { return count; }

bool ph_signals_redraw(void) {
  bool was = redraw;
  redraw = 0;
  return was;
}
