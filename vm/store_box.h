/* store_box.h - the files that bind the store: run files (bind_store.c); files, directories, locks, hashes, data (bind_file.c). */
#ifndef PH_VM_STORE_BOX_H
#define PH_VM_STORE_BOX_H

#include "bind.h"

/* The string at `arg`; raises when it holds a NUL byte, which no path of the system or of a run file can. */
const char *ph_check_path(lua_State *L, int arg);

extern const luaL_Reg ph_file_functions[];

/* Makes the metatable of locks. */
void ph_bind_lock(lua_State *L);

#endif
