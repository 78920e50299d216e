/* bind_proc.c - processes and pipes: fork for workers, popen without a shell for programs such as gnuplot. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pool.h"
#include "os_box.h"

/* ---- workers ---- */

/* A plan has threads, and those do not survive a fork. */
static int l_fork(lua_State *L) {
  if (ph_live_get(PH_LIVE_PLAN) > 0) {
    lua_gc(L, LUA_GCCOLLECT);
    if (ph_live_get(PH_LIVE_PLAN) > 0) {
      ph_fail(L, "fork: %d plans are still open", ph_live_get(PH_LIVE_PLAN));
    }
  }
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid < 0) {
    return ph_soft_errno(L, "fork");
  }
  lua_pushinteger(L, pid);
  return 1;
}

/* native.wait(block) -> pid, exit code or nil, signal or nil; nil, "running" | "interrupted" | "no child". */
static int l_wait(lua_State *L) {
  int status = 0;
  pid_t pid = waitpid(-1, &status, lua_toboolean(L, 1) ? 0 : WNOHANG);
  if (pid <= 0) {
    lua_pushnil(L);
    lua_pushstring(L, pid == 0 ? "running" : errno == EINTR ? "interrupted" : "no child");
    return 2;
  }
  lua_pushinteger(L, pid);
  if (WIFEXITED(status)) {
    lua_pushinteger(L, WEXITSTATUS(status));
  } else {
    lua_pushnil(L);
  }
  if (WIFSIGNALED(status)) {
    lua_pushinteger(L, WTERMSIG(status));
  } else {
    lua_pushnil(L);
  }
  return 3;
}

static int l_kill(lua_State *L) {
  static const struct {
    const char *name;
    int number;
  } known[] = {
      {"SIGTERM", SIGTERM}, {"SIGINT", SIGINT}, {"SIGKILL", SIGKILL}, {"SIGHUP", SIGHUP}, {"SIGUSR1", SIGUSR1}};
  pid_t pid = (pid_t)luaL_checkinteger(L, 1);
  const char *name = luaL_optstring(L, 2, "SIGTERM");
  if (pid <= 0) {
    ph_fail(L, "kill: the process must be a positive number, got %d", (int)pid);
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!strcmp(known[i].name, name)) {
      if (kill(pid, known[i].number)) {
        return ph_soft_errno(L, "kill");
      }
      lua_pushboolean(L, 1);
      return 1;
    }
  }
  return ph_fail(L, "kill: no signal is called '%s' (SIGTERM SIGINT SIGKILL SIGHUP SIGUSR1)", name);
}

/* For forked workers: ends at once, runs no finalizer of what the parent owns too. */
static int l_exit(lua_State *L) {
  int code = (int)luaL_optinteger(L, 1, 0);
  fflush(stdout);
  fflush(stderr);
  _exit(code);
}

static int l_pid(lua_State *L) {
  lua_pushinteger(L, getpid());
  return 1;
}

/* ---- descriptors ---- */

static int l_pipe(lua_State *L) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC)) {
    return ph_soft_errno(L, "pipe");
  }
  lua_pushinteger(L, fd[0]);
  lua_pushinteger(L, fd[1]);
  return 2;
}

static int check_fd(lua_State *L, int arg) {
  lua_Integer fd = luaL_checkinteger(L, arg);
  if (fd < 0 || fd > 1 << 20) {
    ph_fail(L, "a descriptor must be 0 to 1048576, got %lld", (long long)fd);
  }
  return (int)fd;
}

/* native.read_fd(fd): what is there, up to 64 KiB; "" at the end. */
static int l_read_fd(lua_State *L) {
  enum { MOST = 65536 };
  int fd = check_fd(L, 1);
  luaL_Buffer b;
  char *to = luaL_buffinitsize(L, &b, MOST);
  ssize_t k;
  do {
    k = read(fd, to, MOST);
  } while (k < 0 && errno == EINTR && !ph_interrupt_get());
  if (k < 0) {
    return ph_soft_errno(L, "read");
  }
  luaL_pushresultsize(&b, (size_t)k);
  return 1;
}

static int l_close_fd(lua_State *L) {
  if (close(check_fd(L, 1))) {
    return ph_soft_errno(L, "close");
  }
  lua_pushboolean(L, 1);
  return 1;
}

/* native.poll(fds, seconds) -> the descriptors that can be read (or have ended); early and empty after a signal. */
static int l_poll(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  double seconds = luaL_optnumber(L, 2, -1);
  nfds_t n = (nfds_t)lua_rawlen(L, 1);
  struct pollfd *p = lua_newuserdatauv(L, (n + 1) * sizeof *p, 0);
  for (nfds_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    p[i] = (struct pollfd){check_fd(L, -1), POLLIN, 0};
    lua_pop(L, 1);
  }
  int ms = seconds < 0 || seconds > 2e6 ? -1 : (int)ceil(seconds * 1000);
  int ready = poll(p, n, ms);
  if (ready < 0 && errno != EINTR) {
    return ph_soft_errno(L, "poll");
  }
  lua_newtable(L);
  for (nfds_t i = 0, k = 0; ready > 0 && i < n; i++) {
    if (!p[i].revents) {
      continue;
    }
    lua_pushinteger(L, p[i].fd);
    lua_rawseti(L, -2, (lua_Integer)++k);
  }
  return 1;
}

/* ---- programs ---- */

#define CHILD "ph.child"

/* A running program: pipes to its input and from its two outputs, and what came out of them. Closing it ends the program. */
typedef struct child {
  pid_t pid;
  int fd[3];
  char *text[3];
  size_t used[3], room[3];
} child;

static void drop_fd(int *fd) {
  if (*fd >= 0) {
    close(*fd);
  }
  *fd = -1;
}

static int l_child_close(lua_State *L) {
  child *c = luaL_checkudata(L, 1, CHILD);
  for (int i = 0; i < 3; i++) {
    drop_fd(&c->fd[i]);
    ph_mem_free(c->text[i]);
    c->text[i] = NULL;
  }
  if (c->pid > 0) {
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
      continue;
    }
  }
  c->pid = 0;
  return 0;
}

static child *push_child(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  child *c = lua_newuserdatauv(L, sizeof *c, 0);
  *c = (child){.fd = {-1, -1, -1}};
  ph_metatable(L, CHILD, none, NULL, l_child_close);
  luaL_setmetatable(L, CHILD);
  return c;
}

/* Starts argv with the three pipes; 0 or an errno. The other ends are closed here in any case. */
static int spawn(child *c, char *const argv[]) {
  int end[3] = {-1, -1, -1};
  int fd[2];
  int e = 0;
  for (int i = 0; i < 3 && !e; i++) {
    if (pipe2(fd, O_CLOEXEC)) {
      e = errno;
    } else {
      c->fd[i] = fd[i == 0];
      end[i] = fd[i != 0];
    }
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t piped;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attr);
  for (int i = 0; i < 3; i++) {
    posix_spawn_file_actions_adddup2(&actions, end[i], i);
  }
  sigemptyset(&piped);
  sigaddset(&piped, SIGPIPE); /* ignored here; programs expect the default */
  posix_spawnattr_setsigdefault(&attr, &piped);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
  if (!e) {
    e = posix_spawnp(&c->pid, argv[0], &actions, &attr, argv, environ);
  }
  if (e) {
    c->pid = 0;
  }
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; i < 3; i++) {
    drop_fd(&end[i]);
  }
  return e;
}

/* Takes what output i has; false when memory is short. */
static bool take(child *c, int i) {
  if (c->room[i] - c->used[i] < 4096) {
    size_t room = 2 * c->room[i] + 65536;
    char *more = ph_mem_grow(c->text[i], c->used[i], room, 1);
    if (!more) {
      return false;
    }
    c->text[i] = more;
    c->room[i] = room;
  }
  ssize_t k = read(c->fd[i], c->text[i] + c->used[i], c->room[i] - c->used[i]);
  if (k > 0) {
    c->used[i] += (size_t)k;
  } else if (k == 0 || (errno != EINTR && errno != EAGAIN)) {
    drop_fd(&c->fd[i]);
  }
  return true;
}

/* Feeds the input and collects the outputs until both have ended. */
static ph_status converse(child *c, const char *input, size_t n, ph_err *err) {
  fcntl(c->fd[0], F_SETFL, O_NONBLOCK);
  while (c->fd[1] >= 0 || c->fd[2] >= 0) {
    if (c->fd[0] >= 0 && n == 0) {
      drop_fd(&c->fd[0]);
    }
    struct pollfd p[3] = {{c->fd[0], POLLOUT, 0}, {c->fd[1], POLLIN, 0}, {c->fd[2], POLLIN, 0}};
    if (poll(p, 3, -1) < 0 && errno != EINTR) {
      return ph_err_set(err, PH_E_IO, "poll: %s", strerror(errno));
    }
    if (ph_interrupt_get()) {
      return ph_err_set(err, PH_E_INTERRUPTED, "interrupted");
    }
    for (int i = 1; i < 3; i++) {
      if (p[i].fd >= 0 && p[i].revents && !take(c, i)) {
        return ph_err_set(err, PH_E_NOMEM, "output is too long");
      }
    }
    if (p[0].fd >= 0 && p[0].revents) {
      ssize_t k = write(c->fd[0], input, n);
      if (k > 0) {
        input += k;
        n -= (size_t)k;
      } else if (k < 0 && errno != EINTR && errno != EAGAIN) {
        n = 0; /* it does not want the rest */
      }
    }
  }
  return PH_OK;
}

/* The exit code once it has ended; 128 + signal when a signal ended it. */
static int reap(child *c) {
  int status = 0;
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
    continue;
  }
  c->pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* native.popen(argv, input) -> exit code, stdout, stderr */
static int l_popen(lua_State *L) {
  size_t n = 0;
  luaL_checktype(L, 1, LUA_TTABLE);
  const char *input = luaL_optlstring(L, 2, "", &n);
  int argc = (int)lua_rawlen(L, 1);
  if (argc == 0) {
    ph_fail(L, "popen: no program named");
  }
  lua_settop(L, 2);
  luaL_checkstack(L, argc + 8, "too many arguments");
  char **argv = lua_newuserdatauv(L, ((size_t)argc + 1) * sizeof *argv, 0);
  for (int i = 0; i < argc; i++) {
    if (lua_rawgeti(L, 1, i + 1) != LUA_TSTRING) {
      ph_fail(L, "popen: argument %d must be a string, got a %s", i + 1, luaL_typename(L, -1));
    }
    argv[i] = (char *)(intptr_t)lua_tostring(L, -1); /* exec takes char *, and does not change it */
  }
  argv[argc] = NULL;
  child *c = push_child(L);
  ph_err err;
  int e = spawn(c, argv);
  if (e) {
    ph_err_set(&err, e == ENOENT ? PH_E_NOTFOUND : PH_E_IO, "%s: %s", argv[0], strerror(e));
    return ph_soft(L, &err);
  }
  if (converse(c, input, n, &err)) {
    return err.code == PH_E_INTERRUPTED ? ph_raise(L, &err) : ph_soft(L, &err);
  }
  lua_pushinteger(L, reap(c));
  for (int i = 1; i < 3; i++) {
    lua_pushlstring(L, c->text[i] ? c->text[i] : "", c->used[i]);
  }
  return 3;
}

const luaL_Reg ph_proc_functions[] = {
    {"fork", l_fork}, {"wait", l_wait},       {"kill", l_kill},         {"exit", l_exit}, {"pid", l_pid},
    {"pipe", l_pipe}, {"read_fd", l_read_fd}, {"close_fd", l_close_fd}, {"poll", l_poll}, {"popen", l_popen},
    {NULL, NULL}};
