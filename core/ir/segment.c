/* segment.c - the body of a segment, statement by statement: parameters, tables, nodes, and what is done with the nodes. */
#include <string.h>

#include "ir/ir_internal.h"

typedef struct body {
  ph_ir_lines *l;
  ph_ir *ir;
  ph_ir_segment *s;
  int version;
} body;

/* ---- parameters ---- */

static bool parse_init(const ph_ir_lines *l, ph_ir_param *q) {
  for (int i = 0; i < PH_INIT_COUNT; i++) {
    bool scaled = ph_init_scaled((ph_init)i);
    if (strcmp(ph_init_name((ph_init)i), l->word[4]) == 0) {
      q->init = (ph_init)i;
      return l->words == 5 + scaled && (!scaled || ph_ir_finite(l->word[5], &q->scale));
    }
  }
  return false;
}

static ph_status parse_param(body *b) {
  ph_ir_lines *l = b->l;
  ph_ir_segment *s = b->s;
  int64_t rows = 0;
  int64_t cols = 0;
  ph_ir_param q = {0};
  if (l->words < 5 || !ph_ir_name(l->word[1], q.name) || !ph_ir_integer(l->word[2], 1, 1 << 20, &rows) ||
      !ph_ir_integer(l->word[3], 1, 1 << 20, &cols) || rows * cols > PH_IR_MAX_NUMBERS) {
    return ph_ir_bad(l, "expected 'param NAME ROWS COLS INIT [NUMBER]'");
  }
  for (int i = 0; i < s->nparams; i++) {
    if (strcmp(s->param[i].name, q.name) == 0) {
      return ph_ir_bad(l, "a parameter name must be used once in a segment");
    }
  }
  q.rows = (int)rows;
  q.cols = (int)cols;
  if (!parse_init(l, &q)) {
    return ph_ir_bad(l, "unknown initial value");
  }
  ph_status st = ph_ir_param_shared(b->ir, s, &q, l->err);
  st = st ? ph_err_prefix(l->err, st, "line %d", l->line)
          : ph_ir_room(l, "parameters", (void **)&s->param, s->nparams, PH_IR_MAX_PARAMS, sizeof q);
  if (!st) {
    s->param[s->nparams++] = q;
  }
  return st;
}

/* ---- nodes ---- */

static bool parse_ref(const ph_ir_segment *s, const char *w, ph_ir_ref *out) {
  int64_t i = 0;
  if ((w[0] != 'p' && w[0] != 'n') || !ph_ir_integer(w + 1, 0, w[0] == 'p' ? s->nparams - 1 : s->nnodes - 1, &i)) {
    return false;
  }
  *out = (ph_ir_ref){(int)i, w[0] == 'p'};
  return true;
}

/* May a table give attribute a? A number may change from iteration to iteration, what counts or chooses may not. */
static bool tabled(const body *b, const ph_ir_node *n, int a) {
  return b->version > 1 && (n->op->attr[a].kind == PH_ATTR_REAL || n->op->attr[a].kind == PH_ATTR_POSITIVE);
}

static bool parse_attr(const body *b, const char *w, ph_ir_node *n, int a) {
  const char *name = n->op->attr[a].name;
  size_t len = strlen(name);
  if (strncmp(w, name, len) != 0 || w[len] != '=') {
    return false;
  }
  w += len + 1;
  if (*w != '@' || !tabled(b, n, a)) {
    return ph_ir_finite(w, &n->attr[a]);
  }
  n->table[a] = ph_ir_table_find(&b->s->tables, w + 1);
  return n->table[a] >= 0;
}

static ph_status parse_attrs(body *b, ph_ir_node *n, int *at) {
  ph_ir_lines *l = b->l;
  for (int a = 0; a < PH_OP_ATTRS && n->op->attr[a].name; a++) {
    if (*at >= l->words || !parse_attr(b, l->word[*at], n, a)) {
      return ph_err_set(l->err, PH_E_PARSE, "line %d: %s: expected the attribute %s=%s", l->line, n->op->name,
                        n->op->attr[a].name, tabled(b, n, a) ? "NUMBER or =@TABLE" : "NUMBER");
    }
    (*at)++;
  }
  return PH_OK;
}

static ph_status parse_args(body *b, ph_ir_node *n, int at) {
  ph_ir_lines *l = b->l;
  n->nargs = ph_op_nargs(n->op);
  if (l->words - at != n->nargs) {
    return ph_err_set(l->err, PH_E_PARSE, "line %d: %s: takes %d arguments, got %d", l->line, n->op->name, n->nargs,
                      l->words - at);
  }
  for (int a = 0; a < n->nargs; a++) {
    if (!parse_ref(b->s, l->word[at + a], &n->arg[a])) {
      return ph_err_set(l->err, PH_E_PARSE, "line %d: %s: '%s' is not an earlier node or parameter", l->line,
                        n->op->name, l->word[at + a]);
    }
  }
  return PH_OK;
}

static ph_status parse_node(body *b) {
  ph_ir_lines *l = b->l;
  ph_ir_segment *s = b->s;
  int64_t index = 0;
  if (l->words < 3 || !ph_ir_integer(l->word[1], s->nnodes, s->nnodes, &index)) {
    return ph_ir_bad(l, "expected 'node N OP ...' with N counting up");
  }
  ph_ir_node n = {.op = ph_op_find(l->word[2])};
  memset(n.table, -1, sizeof n.table);
  if (!n.op) {
    return ph_err_set(l->err, PH_E_PARSE, "line %d: unknown op '%s'", l->line, l->word[2]);
  }
  int at = 3;
  ph_status st = parse_attrs(b, &n, &at);
  st = st ? st : parse_args(b, &n, at);
  if (st) {
    return st;
  }
  st = ph_ir_node_shape(s, &n, l->err);
  if (st) {
    return ph_err_prefix(l->err, st, "line %d", l->line);
  }
  st = ph_ir_room(l, "nodes", (void **)&s->node, s->nnodes, PH_IR_MAX_NODES, sizeof n);
  if (!st) {
    s->node[s->nnodes++] = n;
  }
  return st;
}

/* ---- what is done with nodes ---- */

/* Word i is a node. */
static bool parse_value(const body *b, int i, int *node) {
  ph_ir_ref r = {0};
  if (b->l->words != i + 1 || !parse_ref(b->s, b->l->word[i], &r) || r.is_param) {
    return false;
  }
  *node = r.index;
  return true;
}

/* The node is one number a sample. */
static ph_status check_scalar(const body *b, int node) {
  ph_shape s = b->s->node[node].shape;
  if (s.pos == 1 && s.cols == 1) {
    return PH_OK;
  }
  return ph_err_set(b->l->err, PH_E_SHAPE, "line %d: %s: must be one number a sample, n%d has %lld x %lld", b->l->line,
                    b->l->word[0], node, (long long)(s.pos ? s.pos : s.rows), (long long)s.cols);
}

static ph_status parse_term(body *b) {
  ph_ir_segment *s = b->s;
  ph_ir_term t = {0};
  if (b->l->words != 3 || !ph_ir_finite(b->l->word[1], &t.weight) || !parse_value(b, 2, &t.node)) {
    return ph_ir_bad(b->l, "expected 'term WEIGHT nK'");
  }
  ph_status st = check_scalar(b, t.node);
  st = st ? st : ph_ir_room(b->l, "terms", (void **)&s->term, s->nterms, PH_IR_MAX_MARKS, sizeof t);
  if (!st) {
    s->term[s->nterms++] = t;
  }
  return st;
}

static ph_status parse_observe(body *b) {
  ph_ir_segment *s = b->s;
  ph_ir_observe o = {0};
  if (b->l->words != 3 || !ph_ir_name(b->l->word[1], o.name) || !parse_value(b, 2, &o.node)) {
    return ph_ir_bad(b->l, "expected 'observe NAME nK'");
  }
  for (int i = 0; i < s->nobserves; i++) {
    if (strcmp(s->observe[i].name, o.name) == 0) {
      return ph_ir_bad(b->l, "an observation's name must be used once in a segment");
    }
  }
  ph_status st = check_scalar(b, o.node);
  st = st ? st : ph_ir_room(b->l, "observations", (void **)&s->observe, s->nobserves, PH_IR_MAX_MARKS, sizeof o);
  if (!st) {
    s->observe[s->nobserves++] = o;
  }
  return st;
}

static ph_status parse_read(body *b) {
  if (b->s->once || !parse_value(b, 1, &b->s->read)) {
    return ph_ir_bad(b->l, "expected 'read nK' in a stream");
  }
  return ph_ir_next(b->l);
}

static ph_status parse_tail(body *b) {
  if (!ph_ir_is(b->l, "result") || !parse_value(b, 1, &b->s->result)) {
    return ph_ir_bad(b->l, "expected 'param', 'node' or 'result nK'");
  }
  ph_status st = ph_ir_next(b->l);
  if (!st && ph_ir_is(b->l, "read")) {
    st = parse_read(b);
  }
  while (!st && b->version > 1 && ph_ir_is(b->l, "term")) {
    st = parse_term(b);
    st = st ? st : ph_ir_next(b->l);
  }
  while (!st && b->version > 1 && ph_ir_is(b->l, "observe")) {
    st = parse_observe(b);
    st = st ? st : ph_ir_next(b->l);
  }
  if (st || !ph_ir_is(b->l, "end") || b->l->words != 1) {
    return st ? st : ph_ir_bad(b->l, "expected 'end'");
  }
  st = ph_ir_segment_close(b->s, b->l->err);
  return st ? ph_err_prefix(b->l->err, st, "line %d", b->l->line) : PH_OK;
}

ph_status ph_ir_segment_body(ph_ir_lines *l, ph_ir *ir, ph_ir_segment *s, int version) {
  body b = {.l = l, .ir = ir, .s = s, .version = version};
  for (;;) {
    ph_status st = ph_ir_next(l);
    if (st) {
      return st;
    }
    if (ph_ir_is(l, "param") && s->nnodes == 0 && s->tables.n == 0) {
      st = parse_param(&b);
    } else if (version > 1 && ph_ir_is(l, "table") && s->nnodes == 0) {
      st = ph_ir_table_read(l, &s->tables, s->repeat, "iterations");
    } else if (ph_ir_is(l, "node")) {
      st = parse_node(&b);
    } else {
      return s->nnodes ? parse_tail(&b) : ph_ir_bad(l, "expected 'param' or 'node'");
    }
    if (st) {
      return st;
    }
  }
}
