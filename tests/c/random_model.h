/* random_model.h - random streams built from the op table.
 *
 * Blocks mix parameter values and states in any way that the rows allow, so that compiled execution meets every op, products that
 * share an input, sums, values used twice, states of several widths, and results that are plain views.
 */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "base/rng.h"
#include "ir/ir.h"
#include "ph_test.h"

enum { RM_WIDTH = 6, RM_NARROW = 4, RM_TEXT = 8192, RM_VALUES = 96, RM_TRIES = 12 };

/* A value of the block being built: a node, or with ref < 0 the parameter ~ref. */
typedef struct rm_value {
  int ref;
  ph_shape shape;
} rm_value;

typedef struct rm {
  ph_rng rng;
  uint64_t at;
  char text[RM_TEXT];
  size_t n;
  int nodes, nvalues;
  rm_value value[RM_VALUES];
  ph_shape state; /* of the block being built */
  bool tables;    /* it has the tables t, of any numbers, and h, of positive ones */
  bool tied;
} rm;

static inline uint32_t rm_pick(rm *m, uint32_t n) { return (uint32_t)(ph_rng_u64(m->rng, m->at++) % n); }

static inline void rm_put(rm *m, const char *fmt, ...) PH_PRINTF(2, 3);
static inline void rm_put(rm *m, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  m->n += (size_t)vsnprintf(m->text + m->n, RM_TEXT - m->n, fmt, ap);
  va_end(ap);
  assert_true(m->n < RM_TEXT);
}

static inline rm_value rm_add(rm *m, int ref, ph_shape shape) {
  assert_true(m->nvalues < RM_VALUES);
  m->value[m->nvalues++] = (rm_value){ref, shape};
  return m->value[m->nvalues - 1];
}

/* ---- one node ---- */

/* One of the last `recent` values that are parameters or samples, of this shape when one is given; there must be some. */
static inline rm_value rm_choose(rm *m, bool param, const ph_shape *shape, uint32_t recent) {
  uint32_t back = rm_pick(m, recent);
  int found = 0;
  for (int turn = 0;; turn++) {
    const rm_value *v = &m->value[m->nvalues - 1 - turn % m->nvalues];
    found += ph_shape_is_param(v->shape) == param && (!shape || ph_shape_equal(v->shape, *shape));
    if (found == (int)back + 1) {
      return *v;
    }
  }
}

static inline const char *rm_attr(rm *m, ph_attr_kind kind) {
  static const char *const numbers[][3] = {[PH_ATTR_REAL] = {"-0.7", "0.5", "1.5"},
                                           [PH_ATTR_POSITIVE] = {"0.3", "0.5", "1"},
                                           [PH_ATTR_COUNT] = {"1", "2", "3"},
                                           [PH_ATTR_INDEX] = {"0", "1", "2"}};
  return numbers[kind][rm_pick(m, 3)];
}

/* The attribute as the text has it: a table now and then, which a parameter value of a tied stream cannot have. */
static inline const char *rm_varied(rm *m, ph_attr_kind kind, ph_shape out, const char *number) {
  bool may = m->tables && !(m->tied && ph_shape_is_param(out)) && rm_pick(m, 2);
  if (may && (kind == PH_ATTR_REAL || kind == PH_ATTR_POSITIVE)) {
    return kind == PH_ATTR_REAL ? "@t" : "@h";
  }
  return number;
}

/* Writes a call that the op's row accepts; false when these arguments do not fit. */
static inline bool rm_node(rm *m, const ph_op *op, const rm_value *arg) {
  ph_shape in[PH_OP_ARGS];
  ph_shape out;
  ph_err err;
  const char *number[PH_OP_ATTRS] = {0};
  double attr[PH_OP_ATTRS] = {0};
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i].name; i++) {
    number[i] = rm_attr(m, op->attr[i].kind);
    attr[i] = strtod(number[i], NULL);
  }
  for (int i = 0; i < ph_op_nargs(op); i++) {
    in[i] = arg[i].shape;
  }
  if (ph_op_shape(op, in, attr, &out, &err)) {
    return false;
  }
  rm_put(m, "node %d %s", m->nodes, op->name);
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i].name; i++) {
    rm_put(m, " %s=%s", op->attr[i].name, rm_varied(m, op->attr[i].kind, out, number[i]));
  }
  for (int i = 0; i < ph_op_nargs(op); i++) {
    rm_put(m, arg[i].ref < 0 ? " p%d" : " n%d", arg[i].ref < 0 ? ~arg[i].ref : arg[i].ref);
  }
  rm_put(m, "\n");
  rm_add(m, m->nodes++, out);
  return true;
}

/* The op that makes of any value what an argument must be beyond its shape; what grows faster than its argument gets a small
 * one. NULL: nothing to do. */
static inline const char *rm_maker(const ph_op *op, char kind) {
  switch (kind) {
  case 'k': return "skew";
  case 'p': return "gram";
  case 'a': return "sigmoid";
  default: return isinf(op->lipschitz) ? "tanh" : NULL;
  }
}

static inline rm_value rm_argument(rm *m, const ph_op *op, char kind, bool states) {
  bool either = kind == 'x' || kind == 'a';
  bool param = either ? !states : kind != 's';
  rm_value v = rm_choose(m, param, NULL, param ? 8 : 4);
  const char *maker = rm_maker(op, kind);
  return maker && rm_node(m, ph_op_find(maker), &v) ? m->value[m->nvalues - 1] : v;
}

/* Products, biases and sums half of the time: they are what the compiler merges. */
static inline const ph_op *rm_op(rm *m) {
  static const ph_role often[] = {PH_ROLE_APPLY, PH_ROLE_APPLY, PH_ROLE_BIAS, PH_ROLE_ADD};
  if (rm_pick(m, 2)) {
    return ph_op_of(often[rm_pick(m, 4)]);
  }
  const ph_op *op = NULL;
  while (!op || !op->shape) {
    op = ph_op_at((int)rm_pick(m, (uint32_t)ph_op_count()));
  }
  return op;
}

/* A product, or a product and a bias, that nothing else uses, times a table: what the compiler may move into the parameters. */
static inline bool rm_scaled(rm *m) {
  rm_value arg[] = {rm_choose(m, true, NULL, 8), rm_choose(m, false, NULL, 4)};
  if (!rm_node(m, ph_op_of(PH_ROLE_APPLY), arg)) {
    return false;
  }
  arg[0] = m->value[--m->nvalues];
  arg[1] = rm_choose(m, true, NULL, 8);
  if (rm_pick(m, 2) && rm_node(m, ph_op_of(PH_ROLE_BIAS), arg)) {
    arg[0] = m->value[--m->nvalues];
  }
  rm_put(m, "node %d scale by=@t n%d\n", m->nodes, arg[0].ref);
  rm_add(m, m->nodes++, arg[0].shape);
  return true;
}

static inline void rm_grow(rm *m) {
  if (m->tables && rm_pick(m, 4) == 0 && rm_scaled(m)) {
    return;
  }
  const ph_op *op = rm_op(m);
  for (int t = 0; t < RM_TRIES; t++) {
    rm_value arg[PH_OP_ARGS];
    bool states = rm_pick(m, 4) > 0;
    for (int i = 0; op->args[i]; i++) {
      arg[i] = rm_argument(m, op, op->args[i], states);
    }
    if (rm_node(m, op, arg)) {
      return;
    }
  }
}

/* ---- blocks and models ---- */

/* A recent node that has the shape of the block's state. */
static inline int rm_state(rm *m) { return rm_choose(m, false, &m->state, 4).ref; }

static inline void rm_param(rm *m, char name, int rows, int cols, const char *init) {
  rm_put(m, "param %c %d %d %s\n", name, rows, cols, init);
  int params = 0;
  for (int i = 0; i < m->nvalues; i++) {
    params += m->value[i].ref < 0;
  }
  rm_add(m, ~params, ph_shape_param(rows, cols));
}

static inline void rm_leaf(rm *m, ph_role role, ph_shape shape) {
  rm_put(m, "node %d %s\n", m->nodes, ph_op_of(role)->name);
  rm_add(m, m->nodes++, shape);
}

static inline void rm_tables(rm *m, int repeat) {
  for (int k = 0; m->tables && k < 2; k++) {
    rm_put(m, "table %s", k ? "h" : "t");
    for (int i = 0; i < repeat; i++) {
      rm_put(m, " %g", k ? 0.1 + 0.2 * i : 1.5 - 0.75 * i);
    }
    rm_put(m, "\n");
  }
}

/* The declarations and nodes of an iteration of `repeat`. input: there is one, of the shape of the state. */
static inline void rm_block(rm *m, ph_shape state, bool input, int repeat) {
  m->nodes = m->nvalues = 0;
  m->state = state;
  rm_param(m, 'D', RM_NARROW, RM_WIDTH, "normal 0.3");
  rm_param(m, 'U', RM_WIDTH, RM_NARROW, "normal 0.4");
  rm_param(m, 'A', RM_WIDTH, RM_WIDTH, "normal 0.3");
  rm_param(m, 'B', RM_WIDTH, RM_WIDTH, "normal 0.3");
  rm_param(m, 'C', RM_WIDTH, RM_WIDTH, "uniform 0.4");
  rm_param(m, 'b', 1, RM_WIDTH, "normal 0.5");
  rm_param(m, 'g', 1, RM_WIDTH, "constant 0.8");
  rm_param(m, 'q', 1, RM_WIDTH, "normal 0.4");
  rm_tables(m, repeat);
  rm_leaf(m, PH_ROLE_STATE, state);
  if (input) {
    rm_leaf(m, PH_ROLE_INPUT, state);
  }
  int steps = 4 + (int)rm_pick(m, 12);
  for (int i = 0; i < steps; i++) {
    rm_grow(m);
  }
}

/* The properties of a stream. */
typedef struct rm_stream {
  bool tied, driven, from_zero, read;
} rm_stream;

/* Every combination has a number, 0 to 15. */
enum { RM_STREAMS = 16 };
static inline rm_stream rm_stream_at(int i) {
  return (rm_stream){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
}

static inline void rm_head(rm *m, ph_shape enters) {
  rm_put(m, "phrun-ir 2\ndtype f64\ninput %d", (int)(enters.pos / enters.wide));
  if (enters.wide > 1) {
    rm_put(m, " %d", (int)enters.wide);
  }
  rm_put(m, " %d\n", RM_WIDTH);
}

/* Two numbers a sample, of some state of the iteration, as terms and observations. Only a state of one position has them. */
static inline void rm_end(rm *m, int result, int read) {
  bool numbers = m->state.pos == 1 && rm_pick(m, 2);
  int at = m->nodes;
  if (numbers) {
    rm_put(m, "node %d apply p7 n%d\nnode %d mul n%d n%d\n", at, rm_state(m), at + 1, at, at);
  }
  rm_put(m, "result n%d\n", result);
  if (read >= 0) {
    rm_put(m, "read n%d\n", read);
  }
  if (numbers) {
    rm_put(m, "term 0.5 n%d\nterm 1 n%d\nobserve first n%d\nobserve square n%d\n", at, at + 1, at, at + 1);
  }
  rm_put(m, "end\n");
}

static inline void rm_stage(rm *m, ph_shape enters, int number) {
  m->tables = m->tied = false;
  rm_put(m, "segment s%d\n", number);
  rm_block(m, enters, false, 1);
  rm_end(m, rm_state(m), -1);
}

static inline void rm_stream_segment(rm *m, const rm_stream *k, ph_shape state, int repeat, int number) {
  m->tables = rm_pick(m, 2) == 0;
  m->tied = k->tied;
  rm_put(m, "segment s%d repeat %d%s%s", number, repeat, k->tied ? " tied" : "", k->driven ? " driven" : "");
  if (k->from_zero) {
    rm_put(m, " from zero %d %d", (int)state.pos, RM_WIDTH);
  }
  rm_put(m, "\n");
  rm_block(m, state, k->driven, repeat);
  int result = rm_state(m);
  rm_end(m, result, k->read ? rm_state(m) : -1);
}

/* The text as it is printed: of version 1 where that can say it. */
static inline void rm_canonical(rm *m) {
  ph_ir *ir = NULL;
  ph_err err;
  char *text = NULL;
  if (ph_ir_read(&ir, m->text, m->n, &err)) {
    fail_msg("%s\n%s", err.text, m->text);
  }
  ph_ok(ph_ir_print(ir, &text, &m->n, &err));
  assert_true(m->n < RM_TEXT);
  memcpy(m->text, text, m->n + 1);
  ph_mem_free(text);
  ph_ir_free(ir);
}

/* A stage (left out of every third model, so that streams also meet the data), a stream of one or two positions a place, and a
 * stage that reads it out. */
static inline void rm_model(rm *m, uint64_t seed, const rm_stream *k) {
  *m = (rm){.rng = ph_rng_of(seed, "model")};
  int repeat = 3 + (int)rm_pick(m, 3);
  int lines = 1 + (rm_pick(m, 3) == 0);
  int places = repeat + !k->from_zero;
  int number = 1;
  ph_shape place = ph_shape_sample(lines, 1, RM_WIDTH);
  ph_shape enters = k->driven ? ph_shape_sample(places * lines, lines, RM_WIDTH) : place;
  rm_head(m, enters);
  if (seed % 3) {
    rm_stage(m, enters, number++);
  }
  rm_stream_segment(m, k, place, repeat, number);
  rm_stage(m, k->read ? ph_shape_sample(repeat * lines, lines, RM_WIDTH) : place, number + 1);
  rm_put(m, "loss mse\n");
  rm_canonical(m);
}

#endif
