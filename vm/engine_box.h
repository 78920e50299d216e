/* engine_box.h - the files behind ph_bind_engine: bind_op.c, bind_ir.c, bind_plan.c and bind_plan_run.c. */
#ifndef PH_VM_ENGINE_BOX_H
#define PH_VM_ENGINE_BOX_H

#include "bind.h"
#include "engine/run/plan.h"

#define PH_PLAN "ph.plan"
#define PH_DATA "ph.data"

/* The userdata of a plan. */
typedef struct ph_plan_box {
  ph_plan *plan; /* NULL when closed */
  int32_t *row;  /* row numbers counting from 0, grown as needed */
  int64_t row_room;
} ph_plan_box;

extern const luaL_Reg ph_op_functions[];
extern const luaL_Reg ph_ir_functions[];
extern const luaL_Reg ph_plan_functions[];
extern const luaL_Reg ph_plan_run_methods[];

void ph_plan_metatables(lua_State *L);

/* Pushes a model as a table: dtype, input, output, loss, segments. */
void ph_push_model(lua_State *L, const ph_ir *ir);

/* The plan at argument 1; raises when closed. */
ph_plan_box *ph_check_plan(lua_State *L);
/* The dataset at `arg` (native.data) into *out; raises when one of its tensors has been closed. Borrowed while the userdata lives. */
void ph_check_data(lua_State *L, int arg, ph_data *out);

/* Raises when the table at `arg` has a key that is not in `keys` (NULL-terminated); `what` names the table. */
void ph_check_keys(lua_State *L, int arg, const char *what, const char *const keys[]);

#endif
