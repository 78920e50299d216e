/* bind_engine.c - ops evaluated eagerly, the canonical text of models, compiled plans: one table per header. */
#include "engine_box.h"
#include "kernels/kern.h"

/* native.kern_peak(dtype, seconds) -> GFLOP/s of one core by the micro-kernel on operands in its first cache. */
static int l_kern_peak(lua_State *L) {
  double seconds = luaL_optnumber(L, 2, 0.2);
  if (!(seconds > 0 && seconds <= 10)) {
    ph_fail(L, "kern_peak: %.14g is outside 0..10 seconds", seconds);
  }
  lua_pushnumber(L, ph_kern_peak(ph_opt_dtype(L, 1, PH_F32), seconds));
  return 1;
}

void ph_bind_engine(lua_State *L) {
  luaL_setfuncs(L, ph_op_functions, 0);
  luaL_setfuncs(L, ph_ir_functions, 0);
  ph_plan_metatables(L);
  luaL_setfuncs(L, ph_plan_functions, 0);
  lua_pushcfunction(L, l_kern_peak);
  lua_setfield(L, -2, "kern_peak");
}
