/* bind.h - what the files that bind C to Lua share.
 *
 * A bound function has three parts: (1) check the arguments and create the result userdata *empty*; (2) call core, no Lua
 * call; (3) raise or push. lua_error jumps over C frames, so no C resource is held outside a userdata while Lua may raise:
 *
 *   static int l_idx_read(lua_State *L) {
 *     const char *path = luaL_checkstring(L, 1);
 *     ph_tensor **out = ph_push_tensor(L);            // empty, owned by Lua
 *     ph_err err;
 *     if (ph_idx_read(path, 0, out, &err)) return ph_soft(L, &err);
 *     return ph_tensor_ready(L, 1);                   // tells the collector how large the topmost tensor is
 *   }
 */
#ifndef PH_VM_BIND_H
#define PH_VM_BIND_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "base/status.h"
#include "base/tensor.h"

/* Each adds its functions to the table on top of the stack (`ph.native`). */
void ph_bind_tensor(lua_State *L);
void ph_bind_la(lua_State *L);
void ph_bind_engine(lua_State *L);
void ph_bind_laws(lua_State *L);
void ph_bind_store(lua_State *L);
void ph_bind_os(lua_State *L);
void ph_bind_sandbox(lua_State *L);
void ph_bind_repl(lua_State *L);

/* ---- errors ---- (int for `return ph_raise(L, &err);`) */

#define PH_NORETURN __attribute__((noreturn))

/* Raises the text of `err` as a string without position ("interrupted" for PH_E_INTERRUPTED). */
PH_NORETURN int ph_raise(lua_State *L, const ph_err *err);
/* Pushes nil, text, "PH_E_NAME"; returns 3, for `return ph_soft(L, &err);`. */
int ph_soft(lua_State *L, const ph_err *err);
/* Raises a formatted line without position. */
PH_NORETURN int ph_fail(lua_State *L, const char *fmt, ...) PH_PRINTF(2, 3);

/* ---- handles ---- */

/* Live handles by kind, for native.live() and the test helper that fails a test which leaves some open. */
typedef enum ph_live {
  PH_LIVE_TENSOR,
  PH_LIVE_PLAN,
  PH_LIVE_DATA,
  PH_LIVE_READER,
  PH_LIVE_LOCK,
  PH_LIVE_COUNT
} ph_live;
void ph_live_add(ph_live kind, int delta);
int ph_live_get(ph_live kind);
const char *ph_live_name(ph_live kind);

/* Makes the metatable `name`: __index = a table of `methods`, `meta` set on the metatable itself (NULL: none), and
 * `close` as __gc, __close and method close (it must be safe twice). Pushes nothing. */
void ph_metatable(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta, lua_CFunction close);

/* Pushes a userdata that owns one block of ph_mem_new: store the block in the returned slot; it is freed by the
 * collector, or at once by ph_block_free. For text and arrays that core hands over. */
void **ph_push_block(lua_State *L);
void ph_block_free(void **slot);

/* ---- tensors ---- */

/* Pushes an empty tensor userdata and returns its slot, to be filled by core. Counted as live when filled (ph_tensor_ready). */
ph_tensor **ph_push_tensor(lua_State *L);
/* The `n` topmost stack entries are tensors that have just been filled: counts them and steps the collector by their size, which
 * it cannot see. Returns n, for `return ph_tensor_ready(L, n);`. */
int ph_tensor_ready(lua_State *L, int n);
/* The tensor at `arg`; raises when it is something else or closed. Borrowed while the userdata lives. */
ph_tensor *ph_check_tensor(lua_State *L, int arg);
/* NULL when `arg` is not a tensor; raises when the tensor is closed. */
ph_tensor *ph_test_tensor(lua_State *L, int arg);
/* A list of 0..PH_RANK_MAX sizes at `arg` into dim; returns the rank. Raises with the index of the fault. */
int ph_check_shape(lua_State *L, int arg, int64_t dim[PH_RANK_MAX]);
/* A dtype name at `arg`, `def` when absent; raises with the valid names. */
ph_dtype ph_opt_dtype(lua_State *L, int arg, ph_dtype def);
/* Raises when `bytes` more would not fit this machine's memory or the limit of the running spec. */
void ph_check_room(lua_State *L, double bytes);

#endif
