/* random_model.h - random streams built from the op table.
 *
 * Blocks mix parameter values and states in any way that the rows allow, so that compiled execution meets every op, products that
 * share an input, sums, values used twice, states of several widths and positions, and results that are plain views. What has
 * another shape than the state becomes a number a sample and a term of the loss.
 */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "base/rng.h"
#include "ir/ir.h"
#include "ph_test.h"

enum { RM_WIDTH = 6, RM_NARROW = 4, RM_TEXT = 16384, RM_VALUES = 128, RM_TRIES = 12, RM_MOST = 200 };

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
                                           [PH_ATTR_COUNT] = {"1", "2", "4"},
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

/* Writes a call with these numbers as attributes, some of them from a table, if the op's row accepts it. */
static inline bool rm_write(rm *m, const ph_op *op, const rm_value *arg, const char *const *number) {
  ph_shape in[PH_OP_ARGS];
  ph_shape out;
  ph_err err;
  double attr[PH_OP_ATTRS] = {0};
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i].name; i++) {
    attr[i] = strtod(number[i], NULL);
  }
  for (int i = 0; i < ph_op_nargs(op); i++) {
    in[i] = arg[i].shape;
  }
  if (ph_op_shape(op, in, attr, &out, &err) || out.rows * out.cols > RM_MOST || out.pos * out.cols > RM_MOST) {
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

/* A call with random attributes; false when these arguments do not fit. */
static inline bool rm_node(rm *m, const ph_op *op, const rm_value *arg) {
  const char *number[PH_OP_ATTRS] = {0};
  for (int i = 0; i < PH_OP_ATTRS && op->attr[i].name; i++) {
    number[i] = rm_attr(m, op->attr[i].kind);
  }
  return rm_write(m, op, arg, number);
}

/* A call that is known to fit. */
static inline rm_value rm_call(rm *m, const char *name, rm_value x, rm_value y) {
  assert_true(rm_node(m, ph_op_find(name), (rm_value[]){x, y}));
  return m->value[m->nvalues - 1];
}

static inline rm_value rm_one(rm *m, const char *name, rm_value x) { return rm_call(m, name, x, x); }

/* The identity plus a square matrix of another kind. */
static inline rm_value rm_from_identity(rm *m, rm_value x) {
  char n[16];
  snprintf(n, sizeof n, "%d", (int)x.shape.rows);
  assert_true(rm_write(m, ph_op_find("eye"), NULL, (const char *[]){n}));
  return rm_call(m, "add", m->value[m->nvalues - 1], x);
}

/* Whether argument i may make the result grow beyond all measure. */
static inline bool rm_steep(const ph_op *op, int i) {
  bool product = op->gain == PH_GAIN_SCHUR || op->gain == PH_GAIN_INNER;
  return isinf(op->lipschitz) || (product && i == 0);
}

/* Makes of any value what argument i must be beyond its shape, and of what grows faster than its argument a small one. */
static inline rm_value rm_made(rm *m, const ph_op *op, int i, rm_value v) {
  bool square = v.shape.rows == v.shape.cols;
  switch (op->args[i]) {
  case 'k': return square ? rm_one(m, "skew", v) : v;
  case 'p': return square ? rm_from_identity(m, rm_one(m, "gram", v)) : v;
  case 'r': return square ? rm_from_identity(m, rm_one(m, "skew", v)) : v;
  case 'a': return rm_one(m, "sigmoid", rm_one(m, "tanh", v));
  default: return rm_steep(op, i) ? rm_one(m, "tanh", v) : v;
  }
}

static inline rm_value rm_argument(rm *m, const ph_op *op, int i, bool states) {
  bool either = op->args[i] == 'x' || op->args[i] == 'a';
  bool param = either ? !states : op->args[i] != 's';
  return rm_made(m, op, i, rm_choose(m, param, NULL, param ? 8 : 4));
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
      arg[i] = rm_argument(m, op, i, states);
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

/* The carried value, repeated and cut to a width. */
static inline rm_value rm_of_width(rm *m, int64_t width) {
  rm_value state = {.ref = 0, .shape = m->state};
  rm_value v = state;
  while (v.shape.cols < width) {
    v = rm_call(m, "concat", v, state);
  }
  if (v.shape.cols > width) {
    char to[16];
    snprintf(to, sizeof to, "%d", (int)width);
    assert_true(rm_write(m, ph_op_find("slice"), &v, (const char *[]){"1", to}));
    v = m->value[m->nvalues - 1];
  }
  return v;
}

/* A number a sample that depends on a value of any kind. */
static inline rm_value rm_number(rm *m, rm_value v) {
  if (ph_shape_is_param(v.shape)) {
    v = rm_call(m, "apply", v, rm_of_width(m, v.shape.cols));
  }
  rm_value small = rm_one(m, "tanh", rm_one(m, "mean_positions", v));
  return rm_call(m, "dot", small, small);
}

/* Numbers of the last values that do not have the shape of the state: their nodes. */
static inline int rm_strange(rm *m, int number[2]) {
  int n = 0;
  for (int i = m->nvalues - 1; i >= 0 && n < 2; i--) {
    rm_value v = m->value[i];
    int64_t most = v.shape.rows > v.shape.cols ? v.shape.rows : v.shape.cols;
    bool wide = ph_shape_is_param(v.shape) && most * m->state.pos > RM_MOST / 4;
    if (v.ref >= 0 && !wide && !ph_shape_equal(v.shape, m->state)) {
      number[n++] = rm_number(m, v).ref;
    }
  }
  return n;
}

/* Two numbers a sample, of some state of the iteration, as terms and observations (only a state of one position has them), and
 * numbers of values of other shapes as terms. */
static inline void rm_end(rm *m, int result, int read) {
  bool numbers = m->state.pos == 1 && rm_pick(m, 2);
  int strange[2];
  int nstrange = rm_pick(m, 2) ? rm_strange(m, strange) : 0;
  int at = m->nodes;
  if (numbers) {
    rm_put(m, "node %d apply p7 n%d\nnode %d mul n%d n%d\n", at, rm_state(m), at + 1, at, at);
  }
  rm_put(m, "result n%d\n", result);
  if (read >= 0) {
    rm_put(m, "read n%d\n", read);
  }
  for (int i = 0; i < nstrange; i++) {
    rm_put(m, "term 0.3 n%d\n", strange[i]);
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

/* A stage (left out of every third model, so that streams also meet the data), a stream of one, two or four positions a place,
 * and a stage that reads it out. */
static inline void rm_model(rm *m, uint64_t seed, const rm_stream *k) {
  *m = (rm){.rng = ph_rng_of(seed, "model")};
  int repeat = 3 + (int)rm_pick(m, 3);
  int lines = 1 << rm_pick(m, 3);
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
