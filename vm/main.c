/* main.c - the program: BLAS, signals, one Lua state, lua/ph/verb/cli.lua. The only file that may end the process
 * (forked workers aside).
 *
 * Exit codes are those of ph.verb.cli (docs/language.md); 1 with one line when Lua fails outside of it, with a traceback when PHRUN_DEBUG is set. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "host.h"

/* Standard streams that the caller has closed would give their numbers to the files opened next: what is said would be
 * written into results. */
static void open_streams(void) {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) {
    close(fd);
  }
}

static void stop(int code) { _exit(code); }

static int handler(lua_State *L) {
  const char *text = luaL_tolstring(L, 1, NULL);
  if (getenv("PHRUN_DEBUG")) {
    luaL_traceback(L, L, text, 1);
  }
  return 1;
}

/* Everything that may raise: (argc, argv, lua_dir) as light userdata. Returns the exit code. */
static int run(lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  ph_state_open(L, lua_touserdata(L, 3));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "ph.verb.cli");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "main");
  lua_createtable(L, argc, 0);
  for (int i = 1; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 1);
  lua_pushinteger(L, lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 1);
  return 1;
}

static int run_protected(lua_State *L, int argc, char **argv, char *lua_dir) {
  lua_pushcfunction(L, handler);
  lua_pushcfunction(L, run);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  lua_pushlightuserdata(L, lua_dir);
  if (lua_pcall(L, 3, 1, 1) == LUA_OK) {
    return (int)lua_tointeger(L, -1);
  }
  const char *text = lua_tostring(L, -1);
  fflush(stdout);
  fprintf(stderr, "phrun: %s\n", text ? text : "error without a text");
  return 1;
}

/* Results are printed by now: a full disk or a closed pipe at standard output is still a failure. */
static int flush_output(int code) {
  int lost = fflush(stdout) != 0 && errno != EPIPE ? errno : ph_host_output_lost();
  if (!lost) {
    return code;
  }
  fprintf(stderr, "phrun: standard output: %s\n", strerror(lost));
  return code ? code : 1;
}

int main(int argc, char **argv) {
  char exe[PATH_MAX];
  char lua_dir[PATH_MAX + 64];
  open_streams();
  ph_err err;
  if (ph_host_start_blas(&err)) {
    fprintf(stderr, "phrun: %s\n", err.text);
    return 1;
  }
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[n > 0 ? n : 0] = 0;
  ph_state_lua_dir(exe, lua_dir, sizeof lua_dir);
  lua_State *L = lua_newstate(ph_host_alloc, NULL);
  if (!L) {
    fprintf(stderr, "phrun: out of memory\n");
    return 1;
  }
  ph_signals_start(L, stop);
  int code = run_protected(L, argc, argv, lua_dir);
  lua_close(L);
  return flush_output(code);
}
