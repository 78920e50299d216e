/* tensor_box.h - the files that bind tensors: creation and elements (bind_tensor.c), nested lists (bind_tensor_list.c),
 * shapes (bind_tensor_shape.c), arithmetic and reductions (bind_tensor_math.c), printing (bind_tensor_print.c), random numbers
 * (bind_random.c). */
#ifndef PH_VM_TENSOR_BOX_H
#define PH_VM_TENSOR_BOX_H

#include "bind.h"

#define PH_TENSOR "ph.tensor"

/* Pushes a zero tensor of the given shape, ready to be filled; raises when it cannot be allocated. */
ph_tensor *ph_new_tensor(lua_State *L, ph_dtype dtype, int rank, const int64_t *dim);

/* Pushes element i (storage order): an integer for integer dtypes, else a number. */
void ph_push_element(lua_State *L, const ph_tensor *t, int64_t i);
/* Stores the number at stack index `idx` as element i; raises when the dtype cannot hold it. `what` names it in the message. */
void ph_store_element(lua_State *L, ph_tensor *t, int64_t i, int idx, const char *what);

extern const luaL_Reg ph_tensor_list_functions[]; /* native.from */
extern const luaL_Reg ph_tensor_list_methods[];
extern const luaL_Reg ph_tensor_shape_methods[];
extern const luaL_Reg ph_tensor_math_methods[];
extern const luaL_Reg ph_tensor_math_meta[];

int l_tensor_tostring(lua_State *L);

/* native.random, native.permutation, native.eye */
extern const luaL_Reg ph_random_functions[];

#endif
