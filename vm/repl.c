/* repl.c - line editing on a terminal (libedit) for lua/ph/verb/repl.lua: native.edit_open, edit_line, edit_add, edit_close.
 *
 * Characters are read here and not by libedit, so that Ctrl-C ends the line and nothing else. The completer is a Lua function
 * that maps the text before the cursor to what is to be inserted and, optionally, a list of choices to be shown. */
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/pool.h"
#include "bind.h"
#include "host.h"

#define EDITOR "ph.editor"

typedef struct editor {
  EditLine *el;
  History *history;
  lua_State *L; /* during edit_line: for the completer */
  bool interrupted;
  mbstate_t partial;
  char prompt[64];
} editor;

static int l_edit_close(lua_State *L) {
  editor *e = luaL_checkudata(L, 1, EDITOR);
  if (e->el) {
    el_end(e->el);
  }
  if (e->history) {
    history_end(e->history);
  }
  e->el = NULL;
  e->history = NULL;
  return 0;
}

static char *prompt(EditLine *el) {
  editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  return e->prompt;
}

/* Waits for input: 1 when there is some, -1 after Ctrl-C. */
static int await(EditLine *el, editor *e) {
  struct pollfd p = {STDIN_FILENO, POLLIN, 0};
  for (;;) {
    if (ph_interrupt_get()) {
      e->interrupted = true;
      return -1;
    }
    if (ph_signals_redraw()) {
      el_resize(el);
      el_set(el, EL_PREP_TERM, 1); /* the shell has taken the terminal back while the program was stopped */
      el_set(el, EL_REFRESH);
    }
    if (poll(&p, 1, -1) > 0) {
      return 1;
    }
    if (errno != EINTR) {
      return -1;
    }
  }
}

static int read_char(EditLine *el, wchar_t *out) {
  editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  for (;;) {
    char byte;
    if (await(el, e) < 0) {
      return -1;
    }
    ssize_t k = read(STDIN_FILENO, &byte, 1);
    if (k < 0 && errno == EINTR) {
      continue;
    }
    if (k <= 0) {
      return (int)k;
    }
    if (byte == 0) {
      byte = 'D' & 0x1f; /* a Ctrl-D that was typed before the terminal was in editing mode arrives as NUL */
    }
    size_t used = mbrtowc(out, &byte, 1, &e->partial);
    if (used == (size_t)-2) {
      continue;
    }
    if (used <= 1) {
      return 1;
    }
    memset(&e->partial, 0, sizeof e->partial);
    *out = L'?';
    return 1;
  }
}

/* The completer's answer for the text before the cursor: insert [OUT] and list [OUT] stay valid until the stack is popped. */
static bool ask_completer(editor *e, const LineInfo *line, const char **insert, const char **list) {
  lua_State *L = e->L;
  luaL_getmetatable(L, EDITOR);
  lua_getfield(L, -1, "completer");
  lua_pushlstring(L, line->buffer, (size_t)(line->cursor - line->buffer));
  if (lua_pcall(L, 1, 2, 0) != LUA_OK) {
    return false;
  }
  *insert = lua_tostring(L, -2);
  *list = lua_tostring(L, -1);
  return true;
}

static unsigned char complete(EditLine *el, int key) {
  (void)key;
  editor *e = NULL;
  el_get(el, EL_CLIENTDATA, &e);
  int top = lua_gettop(e->L);
  const char *insert = NULL;
  const char *list = NULL;
  unsigned char result = CC_REFRESH_BEEP;
  if (ask_completer(e, el_line(el), &insert, &list)) {
    if (insert && *insert) {
      el_insertstr(el, insert);
      result = CC_REFRESH;
    }
    if (list && *list) {
      printf("\n%s\n", list);
      fflush(stdout);
      result = CC_REDISPLAY;
    }
  }
  lua_settop(e->L, top);
  return result;
}

static void prepare(editor *e) {
  HistEvent ev;
  history(e->history, &ev, H_SETSIZE, 2000);
  history(e->history, &ev, H_SETUNIQUE, 1);
  el_set(e->el, EL_CLIENTDATA, e);
  el_set(e->el, EL_PROMPT, prompt);
  el_set(e->el, EL_EDITOR, "emacs");
  el_set(e->el, EL_HIST, history, e->history);
  el_set(e->el, EL_GETCFN, read_char);
  el_set(e->el, EL_ADDFN, "phrun-complete", "complete names", complete);
  el_set(e->el, EL_BIND, "^I", "phrun-complete", NULL);
  el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_source(e->el, NULL);
}

/* native.edit_open(completer) -> editor */
static int l_edit_open(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_getmetatable(L, EDITOR);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "completer");
  editor *e = lua_newuserdatauv(L, sizeof *e, 0);
  memset(e, 0, sizeof *e);
  luaL_setmetatable(L, EDITOR);
  if (!setlocale(LC_CTYPE, "") || !strcmp(setlocale(LC_CTYPE, NULL), "C")) {
    setlocale(LC_CTYPE, "C.UTF-8");
  }
  e->history = history_init();
  e->el = e->history ? el_init("phrun", stdin, stdout, stderr) : NULL;
  if (!e->el) {
    return ph_fail(L, "this terminal cannot edit lines");
  }
  prepare(e);
  return 1;
}

static editor *check_editor(lua_State *L) {
  editor *e = luaL_checkudata(L, 1, EDITOR);
  if (!e->el) {
    ph_fail(L, "editor is closed");
  }
  return e;
}

/* editor:line(prompt) -> the line without its newline; nil at the end of input; false after Ctrl-C. */
static int l_edit_line(lua_State *L) {
  editor *e = check_editor(L);
  snprintf(e->prompt, sizeof e->prompt, "%s", luaL_checkstring(L, 2));
  int n = 0;
  luaL_checkstack(L, 20, NULL);
  e->L = L;
  e->interrupted = false;
  fflush(stdout);
  el_set(e->el, EL_PREP_TERM, 1); /* before the prompt is seen: libedit itself does it when it reads */
  const char *line = el_gets(e->el, &n);
  e->L = NULL;
  if (e->interrupted) {
    ph_interrupt_set(0);
    lua_pushboolean(L, 0);
  } else if (!line || n <= 0) {
    lua_pushnil(L);
  } else {
    lua_pushlstring(L, line, (size_t)n - (line[n - 1] == '\n'));
  }
  return 1;
}

/* editor:add(line) puts a line into the history. */
static int l_edit_add(lua_State *L) {
  HistEvent ev;
  history(check_editor(L)->history, &ev, H_ENTER, luaL_checkstring(L, 2));
  return 0;
}

void ph_bind_repl(lua_State *L) {
  static const luaL_Reg methods[] = {{"line", l_edit_line}, {"add", l_edit_add}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"edit_open", l_edit_open}, {NULL, NULL}};
  ph_metatable(L, EDITOR, methods, NULL, l_edit_close);
  luaL_setfuncs(L, functions, 0);
}
