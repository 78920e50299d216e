/* sandbox.c - running Lua code of a spec under limits of instructions, memory and time.
 *
 * Instructions: a count hook. Once they are used up it raises at every further instruction, so no pcall of the spec can continue.
 * It raises by asking for memory that is never given: that error, unlike lua_error, calls no message handler, which would run
 * without hooks. Memory: the allocator of the state refuses to grow past the limit, and tensors count too. Time: of the processor, for
 * native work (products of large tensors) costs few instructions. What neither
 * sees - an endless pattern match, an endless finalizer - a timer finds by the hook's standing still; that ends the program
 * (signals.c), since C code cannot be left otherwise.
 *
 * Limits nest: a spec that loads a sibling shares what is left of its own. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"
#include "bind.h"
#include "host.h"

enum { STRIDE = 1000, REFUSALS = 200, STUCK_SECONDS = 10, MOST_SECONDS = 20, LEVELS = 100, WHERE = 160 };
#define NEVER_GIVEN ((size_t)1 << 46)

/* ---- the limits in force ---- */

typedef struct limits {
  bool active;
  int64_t left;       /* instructions */
  bool spent;         /* they are used up */
  double end;         /* processor time of the process at which it ends */
  bool late;          /* that time has come */
  bool stopped;       /* Ctrl-C */
  size_t most;        /* bytes of the Lua state */
  int refused;        /* allocations that the limit refused */
  int64_t tensors;    /* ph_mem bytes that may be live */
  char where[WHERE];  /* last seen "file:line" */
  char raised[WHERE]; /* "file:line" of the error that ended it, "" when nothing is known */
} limits;

static limits now;
static char program_dir[PATH_MAX + 8]; /* sources of lua/ph: not where a spec is at fault */

/* ---- memory of the state ---- */

static size_t lua_bytes;           /* what the Lua state holds */
static size_t lua_most = SIZE_MAX; /* what it may hold */

void *ph_host_alloc(void *ud, void *ptr, size_t osize, size_t nsize) {
  (void)ud;
  size_t had = ptr ? osize : 0;
  if (nsize == 0) {
    free(ptr);
    lua_bytes -= had;
    return NULL;
  }
  if (nsize >= NEVER_GIVEN) {
    return NULL;
  }
  if (nsize > had && lua_bytes - had + nsize > lua_most) {
    now.refused++;
    return NULL;
  }
  void *p = realloc(ptr, nsize);
  if (p) {
    lua_bytes += nsize - had;
  }
  return p;
}

static volatile long ticks; /* hook calls, for the timer */

bool ph_limit_active(void) { return now.active; }

double ph_limit_room(void) {
  if (!now.active) {
    return -1;
  }
  int64_t room = now.tensors - ph_mem_now().bytes;
  return room > 0 ? (double)room : 0;
}

bool ph_limit_stuck(void) {
  static long seen;
  static int still;
  still = now.active && ticks == seen ? still + 1 : 0;
  seen = ticks;
  return still >= STUCK_SECONDS;
}

const char *ph_limit_where(void) { return now.where; }

static double processor_seconds(void) {
  struct timespec ts;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void watch(bool on) {
  struct itimerval every = {{on, 0}, {on, 0}};
  setitimer(ITIMER_REAL, &every, NULL);
}

static int l_spec_load(lua_State *L);
static int l_limited(lua_State *L);

/* "file:line" of the innermost line inside the limited call that is not the program's own, from `level` outwards; `place` stays
 * when there is none. */
static void find_place(lua_State *L, int level, char place[WHERE]) {
  size_t own = strlen(program_dir);
  lua_Debug ar;
  for (; level < LEVELS && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Slf", &ar);
    lua_CFunction f = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (f == l_spec_load || f == l_limited) {
      return;
    }
    if (ar.currentline > 0 && (own == 0 || strncmp(ar.source + 1, program_dir, own) != 0)) {
      snprintf(place, WHERE, "%s:%d", ar.short_src, ar.currentline);
      return;
    }
  }
}

static void on_count(lua_State *L, lua_Debug *ar) {
  (void)ar;
  if (!now.active) { /* a coroutine that outlived its limits */
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  ticks++;
  if (!now.spent && !now.stopped && !now.late) {
    find_place(L, 0, now.where);
    now.left -= STRIDE;
    now.spent = now.left <= 0 || now.refused > REFUSALS; /* each refusal costs a full collection */
    now.stopped = ph_interrupt_get();
    now.late = processor_seconds() > now.end;
    if (!now.spent && !now.stopped && !now.late) {
      return;
    }
  }
  lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
  lua_newuserdatauv(L, NEVER_GIVEN, 0);
}

static int64_t limit_field(lua_State *L, int arg, const char *key, int64_t def) {
  int ok = 1;
  lua_getfield(L, arg, key);
  int64_t v = lua_isnil(L, -1) ? def : (int64_t)lua_tointegerx(L, -1, &ok);
  if (!ok || v <= 0) {
    ph_fail(L, "limits: %s must be a positive integer, got %s", key, luaL_tolstring(L, -1, NULL));
  }
  lua_pop(L, 1);
  return v;
}

/* The limits of the table at `arg`, none wider than those already in force. */
static limits check_limits(lua_State *L, int arg) {
  limits want = {.active = true};
  if (!lua_isnoneornil(L, arg)) {
    luaL_checktype(L, arg, LUA_TTABLE);
  } else {
    lua_newtable(L);
    lua_replace(L, arg);
  }
  want.left = limit_field(L, arg, "instructions", 100000000);
  int64_t bytes = limit_field(L, arg, "bytes", (int64_t)1 << 28);
  want.most = lua_bytes + (size_t)bytes;
  want.tensors = ph_mem_now().bytes + bytes;
  want.end = processor_seconds() + MOST_SECONDS;
  if (now.active) {
    want.left = want.left < now.left ? want.left : now.left;
    want.most = want.most < now.most ? want.most : now.most;
    want.tensors = want.tensors < now.tensors ? want.tensors : now.tensors;
    want.end = want.end < now.end ? want.end : now.end;
  }
  return want;
}

/* Says which limit ended the call, if one did; else false. */
static bool limit_text(const limits *was, int status, int64_t instructions, int64_t bytes, ph_err *err) {
  if (was->stopped) {
    ph_err_set(err, PH_E_INTERRUPTED, "interrupted");
  } else if (was->refused > REFUSALS || (status == LUA_ERRMEM && was->refused > 0 && !was->spent)) {
    ph_err_set(err, PH_E_LIMIT, "%s: more than %lld MiB of memory", was->where, (long long)(bytes >> 20));
  } else if (was->late) {
    ph_err_set(err, PH_E_LIMIT, "%s: more than %d seconds of work", was->where, MOST_SECONDS);
  } else if (was->spent) {
    ph_err_set(err, PH_E_LIMIT, "%s: more than %lld instructions (an endless loop?)", was->where,
               (long long)instructions);
  } else {
    return false;
  }
  return true;
}

/* The message handler: keeps the error and notes its place, which natives and lua/ph do not know. */
static int note_place(lua_State *L) {
  find_place(L, 1, now.raised);
  return 1;
}

/* The error at the top of the stack as nil, message (a raised table as it is), code, place. */
static int hand_on(lua_State *L, int status, const char *place) {
  lua_pushnil(L);
  lua_insert(L, -2);
  if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TTABLE) {
    lua_pushfstring(L, "error() was called with a %s value instead of a message", luaL_typename(L, -1));
    lua_remove(L, -2);
  }
  lua_pushstring(L, status == LUA_ERRMEM ? "PH_E_NOMEM" : "PH_E_ARG");
  lua_pushstring(L, place);
  return 4;
}

/* Calls the function below `nargs` arguments under limits. Returns its results (count: what is above `base`), or nil, message,
 * code, place; a raised table (a fault) is handed on as it is. */
static int call_limited(lua_State *L, int nargs, int base, limits want, const char *what) {
  limits outer = now;
  int64_t instructions = want.left;
  int64_t bytes = (int64_t)(want.most - lua_bytes);
  lua_Hook hook = lua_gethook(L);
  int mask = lua_gethookmask(L);
  int stride = lua_gethookcount(L);
  snprintf(want.where, sizeof want.where, "%s", what);
  now = want;
  lua_most = want.most;
  lua_sethook(L, on_count, LUA_MASKCOUNT, STRIDE);
  if (!outer.active) {
    watch(true);
  }
  int handler = lua_gettop(L) - nargs;
  lua_pushcfunction(L, note_place);
  lua_insert(L, handler);
  int status = lua_pcall(L, nargs, LUA_MULTRET, handler);
  lua_remove(L, handler);
  limits was = now;
  now = outer;
  now.left -= outer.active ? instructions - was.left : 0;
  now.spent = now.spent || (outer.active && now.left <= 0);
  now.stopped = now.stopped || (outer.active && was.stopped);
  lua_most = outer.active ? outer.most : SIZE_MAX;
  if (!outer.active) {
    watch(false);
  }
  lua_sethook(L, hook, mask, stride);
  ph_err err;
  if (limit_text(&was, status, instructions, bytes, &err)) {
    lua_settop(L, base);
    return ph_soft(L, &err);
  }
  if (status == LUA_OK) {
    return lua_gettop(L) - base;
  }
  return hand_on(L, status, was.raised[0] ? was.raised : what);
}

/* "spec.lua" of a chunk name "@spec.lua". */
static const char *plain_name(const char *chunk) { return *chunk == '@' || *chunk == '=' ? chunk + 1 : chunk; }

static int load_chunk(lua_State *L) {
  size_t n;
  const char *text = lua_tolstring(L, 1, &n);
  if (luaL_loadbufferx(L, text, n, lua_tostring(L, 2), "t")) {
    return lua_error(L);
  }
  lua_pushvalue(L, 3);
  if (!lua_setupvalue(L, -2, 1)) {
    lua_pop(L, 1);
  }
  lua_call(L, 0, LUA_MULTRET);
  return lua_gettop(L) - 3;
}

/* native.spec_load(text, chunkname, env, { instructions, bytes }) *soft* -> what the chunk returns. */
static int l_spec_load(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  const char *chunk = luaL_checkstring(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 4);
  if (n > 0 && text[0] == LUA_SIGNATURE[0]) {
    ph_err err;
    ph_err_set(&err, PH_E_PARSE, "%s: must be Lua text, got compiled code", plain_name(chunk));
    return ph_soft(L, &err);
  }
  limits want = check_limits(L, 4);
  lua_pushcfunction(L, load_chunk);
  for (int i = 1; i <= 3; i++) {
    lua_pushvalue(L, i);
  }
  return call_limited(L, 3, 4, want, plain_name(chunk));
}

/* native.limited(limits, fn, ...) *soft* -> what fn returns: for functions that a spec has handed out. */
static int l_limited(lua_State *L) {
  luaL_checktype(L, 2, LUA_TFUNCTION);
  limits want = check_limits(L, 1);
  lua_Debug ar;
  char what[WHERE];
  lua_pushvalue(L, 2);
  lua_getinfo(L, ">S", &ar);
  snprintf(what, sizeof what, "%s:%d", ar.short_src, ar.linedefined);
  return call_limited(L, lua_gettop(L) - 2, 1, want, what);
}

void ph_limit_program(const char *lua_dir) { snprintf(program_dir, sizeof program_dir, "%s/ph/", lua_dir); }

void ph_bind_sandbox(lua_State *L) {
  static const luaL_Reg functions[] = {{"spec_load", l_spec_load}, {"limited", l_limited}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
