/* bind_ir.c - the canonical text of a model, checked and as a table (ir/ir.h). */
#include <math.h>

#include "base/mem.h"
#include "engine_box.h"
#include "ir/ir.h"

#define IR "ph.ir"

static int l_ir_close(lua_State *L) {
  ph_ir **slot = luaL_checkudata(L, 1, IR);
  ph_ir_free(*slot);
  *slot = NULL;
  return 0;
}

typedef ph_status reader(ph_ir **out, const char *text, size_t n, ph_err *err);

/* Reads argument 1 into a userdata on the stack; NULL with `err` filled on failure. */
static ph_ir *parse(lua_State *L, reader *read, ph_err *err) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  ph_ir **slot = lua_newuserdatauv(L, sizeof *slot, 0);
  *slot = NULL;
  ph_metatable(L, IR, none, NULL, l_ir_close);
  luaL_setmetatable(L, IR);
  return read(slot, text, n, err) ? NULL : *slot;
}

static int printed(lua_State *L, reader *read) {
  ph_err err;
  size_t n = 0;
  const ph_ir *ir = parse(L, read, &err);
  if (!ir) {
    return ph_soft(L, &err);
  }
  void **block = ph_push_block(L);
  char *text = NULL;
  ph_status st = ph_ir_print(ir, &text, &n, &err);
  *block = text;
  if (st) {
    return ph_soft(L, &err);
  }
  lua_pushlstring(L, text, n);
  ph_block_free(block);
  return 1;
}

static int l_ir_check(lua_State *L) { return printed(L, ph_ir_parse); }

static int l_ir_canonical(lua_State *L) { return printed(L, ph_ir_read); }

static void set_int(lua_State *L, const char *key, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, key);
}

static void set_flag(lua_State *L, const char *key, bool v) {
  lua_pushboolean(L, v);
  lua_setfield(L, -2, key);
}

static void set_string(lua_State *L, const char *key, const char *v) {
  lua_pushstring(L, v);
  lua_setfield(L, -2, key);
}

static void set_shape(lua_State *L, const char *key, ph_shape s) {
  lua_createtable(L, 0, 4);
  set_int(L, "pos", s.pos);
  set_int(L, "wide", s.wide);
  set_int(L, "rows", s.rows);
  set_int(L, "cols", s.cols);
  set_int(L, "feat", s.cols);
  lua_setfield(L, -2, key);
}

static void push_param(lua_State *L, const ph_ir_param *p) {
  lua_createtable(L, 0, 5);
  set_string(L, "name", p->name);
  set_int(L, "rows", p->rows);
  set_int(L, "cols", p->cols);
  set_string(L, "init", ph_init_name(p->init));
  lua_pushnumber(L, p->scale);
  lua_setfield(L, -2, "scale");
}

static void push_args(lua_State *L, const ph_ir_node *node) {
  lua_createtable(L, node->nargs, 0);
  for (int i = 0; i < node->nargs; i++) {
    lua_createtable(L, 0, 2);
    set_string(L, "kind", node->arg[i].is_param ? "param" : "node");
    set_int(L, "index", node->arg[i].index + 1);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Attributes by name: numbers, and where a table gives one the list of its numbers. */
static void push_attrs(lua_State *L, const ph_ir_segment *s, const ph_ir_node *node) {
  lua_newtable(L);
  for (int i = 0; i < PH_OP_ATTRS && node->op->attr[i].name; i++) {
    if (node->table[i] < 0) {
      lua_pushnumber(L, node->attr[i]);
    } else {
      const ph_ir_table *t = &s->tables.at[node->table[i]];
      lua_createtable(L, (int)t->n, 0);
      for (int64_t k = 0; k < t->n; k++) {
        lua_pushnumber(L, t->value[k]);
        lua_rawseti(L, -2, k + 1);
      }
    }
    lua_setfield(L, -2, node->op->attr[i].name);
  }
}

static void push_nodes(lua_State *L, const ph_ir_segment *s) {
  lua_createtable(L, s->nnodes, 0);
  for (int i = 0; i < s->nnodes; i++) {
    lua_createtable(L, 0, 4);
    set_string(L, "op", s->node[i].op->name);
    push_args(L, &s->node[i]);
    lua_setfield(L, -2, "args");
    push_attrs(L, s, &s->node[i]);
    lua_setfield(L, -2, "attrs");
    set_shape(L, "shape", s->node[i].shape);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "nodes");
}

static void push_properties(lua_State *L, const ph_ir_segment *s) {
  set_string(L, "name", s->name);
  set_int(L, "repeat_", s->repeat);
  set_flag(L, "once", s->once);
  set_flag(L, "tied", s->tied);
  set_flag(L, "driven", s->driven);
  set_string(L, "from", s->from_zero ? "zero" : "input");
  set_flag(L, "channel", (s->node[s->result].parts & PH_PART_CHANNEL) != 0);
  set_flag(L, "ports", (s->node[s->result].parts & PH_PART_PORT) != 0);
  set_shape(L, "enters", s->in);
  if (s->driven) {
    set_shape(L, "input", s->input);
  }
  set_shape(L, "state", s->state);
  set_shape(L, "output", s->out);
}

static void push_numbers(lua_State *L, const ph_ir_segment *s) {
  lua_createtable(L, s->nterms, 0);
  for (int i = 0; i < s->nterms; i++) {
    lua_createtable(L, 0, 2);
    lua_pushnumber(L, s->term[i].weight);
    lua_setfield(L, -2, "weight");
    set_int(L, "node", s->term[i].node + 1);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "terms");
  lua_createtable(L, s->nobserves, 0);
  for (int i = 0; i < s->nobserves; i++) {
    lua_createtable(L, 0, 2);
    set_string(L, "name", s->observe[i].name);
    set_int(L, "node", s->observe[i].node + 1);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "observes");
}

static void push_segment(lua_State *L, const ph_ir_segment *s) {
  lua_createtable(L, 0, 16);
  push_properties(L, s);
  lua_createtable(L, s->nparams, 0);
  for (int i = 0; i < s->nparams; i++) {
    push_param(L, &s->param[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "params");
  push_nodes(L, s);
  set_int(L, "result", s->result + 1);
  if (s->read >= 0) {
    set_int(L, "read", s->read + 1);
  }
  push_numbers(L, s);
}

void ph_push_model(lua_State *L, const ph_ir *ir) {
  lua_createtable(L, 0, 5);
  set_string(L, "dtype", ph_dtype_name(ir->dtype));
  set_shape(L, "input", ir->input);
  set_shape(L, "output", ir->output);
  set_string(L, "loss", ir->loss->name);
  set_string(L, "needs", ph_loss_need_name(ir->loss->need));
  lua_createtable(L, ir->nsegments, 0);
  for (int i = 0; i < ir->nsegments; i++) {
    push_segment(L, &ir->segment[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "segments");
}

static int l_ir_parse(lua_State *L) {
  ph_err err;
  const ph_ir *ir = parse(L, ph_ir_parse, &err);
  if (!ir) {
    return ph_soft(L, &err);
  }
  ph_push_model(L, ir);
  return 1;
}

static int l_ir_texts(lua_State *L) {
  lua_pushinteger(L, ph_ir_texts());
  return 1;
}

/* The end of a range, where there is one. */
static void set_end(lua_State *L, const char *key, double v) {
  if (!isnan(v)) {
    lua_pushnumber(L, v);
    lua_setfield(L, -2, key);
  }
}

static void push_loss(lua_State *L, const ph_loss *l) {
  lua_createtable(L, 0, 6);
  set_string(L, "name", l->name);
  set_string(L, "word", l->word);
  set_string(L, "needs", ph_loss_need_name(l->need));
  set_string(L, "equation", l->equation);
  set_string(L, "doc", l->doc);
  lua_newtable(L);
  for (int i = 0; i < PH_LOSS_ATTRS && l->attr[i].name; i++) {
    lua_createtable(L, 0, 6);
    set_string(L, "name", l->attr[i].name);
    set_flag(L, "list", l->attr[i].list);
    set_end(L, "initial", l->attr[i].initial);
    set_end(L, "min", l->attr[i].min);
    set_end(L, "above", l->attr[i].above);
    set_end(L, "below", l->attr[i].below);
    set_string(L, "doc", l->attr[i].doc);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "attrs");
}

static int l_losses(lua_State *L) {
  lua_newtable(L);
  for (int i = 0; i < ph_loss_count(); i++) {
    push_loss(L, ph_loss_at(i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int l_ir_limits(lua_State *L) {
  lua_createtable(L, 0, 3);
  set_int(L, "repeat_", PH_IR_MAX_REPEAT);
  set_int(L, "positions", PH_IR_MAX_POS);
  set_int(L, "numbers", PH_IR_MAX_NUMBERS);
  return 1;
}

const luaL_Reg ph_ir_functions[] = {{"ir_check", l_ir_check},
                                    {"ir_canonical", l_ir_canonical},
                                    {"ir_parse", l_ir_parse},
                                    {"ir_texts", l_ir_texts},
                                    {"ir_limits", l_ir_limits},
                                    {"losses", l_losses},
                                    {NULL, NULL}};
