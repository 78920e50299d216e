/* bind_engine.c - ops evaluated eagerly, the canonical text of models, compiled plans: one table per header. */
#include "engine_box.h"

void ph_bind_engine(lua_State *L) {
  luaL_setfuncs(L, ph_op_functions, 0);
  luaL_setfuncs(L, ph_ir_functions, 0);
  ph_plan_metatables(L);
  luaL_setfuncs(L, ph_plan_functions, 0);
}
