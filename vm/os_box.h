/* os_box.h - the files behind ph_bind_os: bind_os.c (time, terminal, interrupts), bind_proc.c (processes), machine.c. */
#ifndef PH_VM_OS_BOX_H
#define PH_VM_OS_BOX_H

#include "bind.h"

extern const luaL_Reg ph_proc_functions[];

/* native.machine() */
int l_machine(lua_State *L);
/* Pushes nil, "WHAT: reason of errno", "PH_E_IO"; returns 3. */
int ph_soft_errno(lua_State *L, const char *what);
/* Writes all n bytes to fd, retrying short writes; 0, or -1 with errno. */
int ph_write_all(int fd, const char *bytes, size_t n);

#endif
