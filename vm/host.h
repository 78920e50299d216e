/* host.h - the Lua state, its memory, the signals and the limits of one process. Private to vm/. */
#ifndef PH_VM_HOST_H
#define PH_VM_HOST_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- memory of the Lua state (sandbox.c) ---- */

/* A lua_Alloc that counts, and refuses to grow above the limit of the running spec. */
void *ph_host_alloc(void *ud, void *ptr, size_t osize, size_t nsize);

/* ---- limits (sandbox.c) ---- */

/* Names the directory of the program's own Lua files, which are never the place of a spec's error. */
void ph_limit_program(const char *lua_dir);
/* True while a spec runs under limits. */
bool ph_limit_active(void);
/* Bytes of tensors the running spec may still create; negative when there is no limit. */
double ph_limit_room(void);
/* Called by the timer each second: true when a limited spec has been stuck in one library call for too long. Async-signal-safe. */
bool ph_limit_stuck(void);
/* "file:line" where the limited spec was last seen. Async-signal-safe. */
const char *ph_limit_where(void);

/* ---- signals (signals.c) ---- */

/* `stop` is called with the exit code when the program must end at once from a signal handler (second Ctrl-C, stuck spec). */
void ph_signals_start(lua_State *L, void (*stop)(int code));
/* Ctrl-C raises "interrupted" in running Lua code while on; otherwise it only sets the flag. */
void ph_signals_break_lua(bool on);
/* SIGINT, SIGTERM and SIGHUP since the start. */
int ph_signals_count(void);
/* True once after the terminal came back from a stop (SIGCONT) or changed its size. */
bool ph_signals_redraw(void);

/* ---- output (bind_os.c) ---- */

/* errno of the first write to standard output that failed although somebody reads there (a full disk); 0: none did. */
int ph_host_output_lost(void);

/* ---- BLAS (bind_la.c) ---- */

/* Loads BLAS and keeps what it says of itself for native.la_info. Once, before there are threads. */
ph_status ph_host_start_blas(ph_err *err) PH_MUST_CHECK;

/* ---- Lua state (state.c) ---- */

/* A fresh state with the standard libraries, `ph.native` and package.path set to the program's own Lua tree.
 * `lua_dir` [IN] directory that holds ph/. Called in protected mode. */
void ph_state_open(lua_State *L, const char *lua_dir);
/* The directory of the program's Lua tree for the executable at `exe`: the source tree beside a build, PREFIX/share/phrun/lua
 * beside PREFIX/bin, or the place of installation. Returns buf. */
char *ph_state_lua_dir(const char *exe, char *buf, size_t size);

#endif
