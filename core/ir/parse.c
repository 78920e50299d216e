/* parse.c - canonical text to a model. Any bytes are safe to give: every line is cut into at most 16 words, every number is
 * range-checked, and the result is printed back and compared, so that only canonical text is accepted. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

enum { WORDS = 16, LINE = 512 };

typedef struct parser {
  const char *text;
  size_t n, at;
  int line;
  char buf[LINE];
  char *word[WORDS];
  int words;
  ph_ir *ir;
  ph_err *err;
} parser;

static ph_status bad(parser *p, const char *what) {
  return ph_err_set(p->err, PH_E_PARSE, "line %d: %s%s%s%s", p->line, what, p->words ? ", got '" : "",
                    p->words ? p->word[0] : "", p->words ? "'" : "");
}

/* Cuts the next line into words; words = 0 at the end of the text. */
static ph_status next(parser *p) {
  p->words = 0;
  p->line++;
  if (p->at == p->n) {
    return PH_OK;
  }
  const char *start = p->text + p->at;
  const char *end = memchr(start, '\n', p->n - p->at);
  if (!end || end - start >= LINE || memchr(start, 0, (size_t)(end - start))) {
    return bad(p, "a line must end with a newline, be shorter than 512 bytes and hold no NUL");
  }
  memcpy(p->buf, start, (size_t)(end - start));
  p->buf[end - start] = 0;
  p->at += (size_t)(end - start) + 1;
  char *save = NULL;
  for (char *w = strtok_r(p->buf, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    if (p->words == WORDS) {
      return bad(p, "too many words");
    }
    p->word[p->words++] = w;
  }
  return p->words ? PH_OK : bad(p, "an empty line is not allowed");
}

static bool is(const parser *p, const char *word) { return p->words > 0 && strcmp(p->word[0], word) == 0; }

static bool integer(const char *w, int64_t lo, int64_t hi, int64_t *out) {
  char *end = NULL;
  errno = 0;
  long long v = strtoll(w, &end, 10);
  if (errno || end == w || *end || v < lo || v > hi) {
    return false;
  }
  *out = v;
  return true;
}

static bool number(const char *w, double *out) {
  char *end = NULL;
  double v = strtod(w, &end);
  if (end == w || *end || !isfinite(v)) {
    return false;
  }
  *out = v;
  return true;
}

static ph_status parse_head(parser *p) {
  ph_status st = next(p);
  if (st || p->words != 2 || !is(p, "phrun-ir") || strcmp(p->word[1], "1") != 0) {
    return st ? st : bad(p, "expected 'phrun-ir 1'");
  }
  st = next(p);
  if (st || p->words != 2 || !is(p, "dtype") || !ph_dtype_find(p->word[1], &p->ir->dtype) || p->ir->dtype > PH_F64) {
    return st ? st : bad(p, "expected 'dtype f32' or 'dtype f64'");
  }
  st = next(p);
  ph_shape *in = &p->ir->input;
  in->rows = in->wide = 1;
  if (st || p->words != 3 || !is(p, "input") || !integer(p->word[1], 1, 1 << 20, &in->pos) ||
      !integer(p->word[2], 1, 1 << 24, &in->cols)) {
    return st ? st : bad(p, "expected 'input POSITIONS FEATURES'");
  }
  return PH_OK;
}

static bool name_ok(const char *w) {
  if (strlen(w) >= PH_IR_NAME || !(isalpha((unsigned char)w[0]) || w[0] == '_')) {
    return false;
  }
  for (; *w; w++) {
    if (!isalnum((unsigned char)*w) && *w != '_') {
      return false;
    }
  }
  return true;
}

static ph_status parse_param(parser *p, ph_ir_segment *s) {
  static const char *const init[] = {"zeros", "ones", "constant", "normal", "uniform"};
  int64_t rows = 0;
  int64_t cols = 0;
  if (p->words < 5 || !name_ok(p->word[1]) || !integer(p->word[2], 1, 1 << 20, &rows) ||
      !integer(p->word[3], 1, 1 << 20, &cols) || rows * cols > 1 << 26) {
    return bad(p, "expected 'param NAME ROWS COLS INIT [NUMBER]'");
  }
  ph_ir_param *q = &s->param[s->nparams];
  for (int i = 0; i < s->nparams; i++) {
    if (strcmp(s->param[i].name, p->word[1]) == 0) {
      return bad(p, "a parameter name must be used once in a segment");
    }
  }
  strcpy(q->name, p->word[1]);
  q->rows = (int)rows;
  q->cols = (int)cols;
  for (int i = 0; i < 5; i++) {
    bool scaled = i >= PH_INIT_CONSTANT;
    if (strcmp(init[i], p->word[4]) == 0 && p->words == 5 + scaled && (!scaled || number(p->word[5], &q->scale))) {
      q->init = (ph_init)i;
      s->nparams++;
      return PH_OK;
    }
  }
  return bad(p, "unknown initial value");
}

static bool parse_ref(const ph_ir_segment *s, const char *w, ph_ir_ref *out) {
  int64_t i = 0;
  if ((w[0] != 'p' && w[0] != 'n') || !integer(w + 1, 0, w[0] == 'p' ? s->nparams - 1 : s->nnodes - 1, &i)) {
    return false;
  }
  *out = (ph_ir_ref){(int)i, w[0] == 'p'};
  return true;
}

static ph_status parse_attrs(parser *p, ph_ir_node *n, int *at) {
  for (int a = 0; a < PH_OP_ATTRS && n->op->attr[a].name; a++) {
    size_t len = strlen(n->op->attr[a].name);
    if (*at >= p->words || strncmp(p->word[*at], n->op->attr[a].name, len) != 0 || p->word[*at][len] != '=' ||
        !number(p->word[*at] + len + 1, &n->attr[a])) {
      return ph_err_set(p->err, PH_E_PARSE, "line %d: %s: expected the attribute %s=NUMBER", p->line, n->op->name,
                        n->op->attr[a].name);
    }
    (*at)++;
  }
  return PH_OK;
}

static ph_status parse_node(parser *p, ph_ir_segment *s) {
  int64_t index = 0;
  if (p->words < 3 || !integer(p->word[1], s->nnodes, s->nnodes, &index)) {
    return bad(p, "expected 'node N OP ...' with N counting up");
  }
  ph_ir_node *n = &s->node[s->nnodes];
  n->op = ph_op_find(p->word[2]);
  if (!n->op) {
    return ph_err_set(p->err, PH_E_PARSE, "line %d: unknown op '%s'", p->line, p->word[2]);
  }
  int at = 3;
  ph_status st = parse_attrs(p, n, &at);
  if (st) {
    return st;
  }
  n->nargs = ph_op_nargs(n->op);
  if (p->words - at != n->nargs) {
    return ph_err_set(p->err, PH_E_PARSE, "line %d: %s: takes %d arguments, got %d", p->line, n->op->name, n->nargs,
                      p->words - at);
  }
  for (int a = 0; a < n->nargs; a++) {
    if (!parse_ref(s, p->word[at + a], &n->arg[a])) {
      return ph_err_set(p->err, PH_E_PARSE, "line %d: %s: '%s' is not an earlier node or parameter", p->line,
                        n->op->name, p->word[at + a]);
    }
  }
  st = ph_ir_node_shape(s, n, p->err);
  if (st) {
    return ph_err_prefix(p->err, st, "line %d", p->line);
  }
  s->nnodes++;
  return PH_OK;
}

static ph_status grow(void **array, int used, int limit, size_t size, parser *p) {
  if (used == limit) {
    return ph_err_set(p->err, PH_E_LIMIT, "line %d: more than %d of one kind in a model", p->line, limit);
  }
  if ((used & (used - 1)) == 0) { /* room is a power of two: grow when full */
    void *grown = ph_mem_grow(*array, (size_t)used * size, used ? 2 * (size_t)used : 1, size);
    if (!grown) {
      return ph_err_set(p->err, PH_E_NOMEM, "out of memory while reading a model");
    }
    *array = grown;
  }
  return PH_OK;
}

static ph_status parse_tail(parser *p, ph_ir_segment *s) {
  ph_ir_ref r = {0};
  if (p->words != 2 || !is(p, "result") || !parse_ref(s, p->word[1], &r) || r.is_param) {
    return bad(p, "expected 'param', 'node' or 'result nK'");
  }
  s->result = r.index;
  ph_status st = next(p);
  if (!st && is(p, "read")) {
    if (s->kind != PH_SEG_TIME || p->words != 2 || !parse_ref(s, p->word[1], &r) || r.is_param) {
      return bad(p, "expected 'read nK' in a stream over time");
    }
    s->read = r.index;
    st = next(p);
  }
  if (st || !is(p, "end") || p->words != 1) {
    return st ? st : bad(p, "expected 'end'");
  }
  st = ph_ir_segment_close(s, p->err);
  return st ? ph_err_prefix(p->err, st, "line %d", p->line) : PH_OK;
}

static ph_status parse_body(parser *p, ph_ir_segment *s) {
  for (;;) {
    ph_status st = next(p);
    if (st) {
      return st;
    }
    if (is(p, "param") && s->nnodes == 0) {
      st = grow((void **)&s->param, s->nparams, PH_IR_MAX_PARAMS, sizeof *s->param, p);
      st = st ? st : parse_param(p, s);
    } else if (is(p, "node")) {
      st = grow((void **)&s->node, s->nnodes, PH_IR_MAX_NODES, sizeof *s->node, p);
      st = st ? st : parse_node(p, s);
    } else {
      return s->nnodes ? parse_tail(p, s) : bad(p, "expected 'param' or 'node'");
    }
    if (st) {
      return st;
    }
  }
}

static ph_status parse_segment(parser *p, ph_shape in) {
  static const char *const kind[] = {"once", "depth", "time"};
  ph_ir *ir = p->ir;
  ph_status st = grow((void **)&ir->segment, ir->nsegments, PH_IR_MAX_SEGMENTS, sizeof *ir->segment, p);
  if (st) {
    return st;
  }
  ph_ir_segment *s = &ir->segment[ir->nsegments++];
  memset(s, 0, sizeof *s);
  s->read = -1;
  int k = 0;
  while (k < 3 && (p->words != 3 || strcmp(kind[k], p->word[1]) != 0)) {
    k++;
  }
  if (k == 3 || !integer(p->word[2], 1, k == PH_SEG_ONCE ? 1 : 1 << 20, &s->repeat)) {
    return bad(p, "expected 'segment once 1', 'segment depth N' or 'segment time N'");
  }
  s->kind = (ph_seg_kind)k;
  if (s->kind == PH_SEG_TIME) {
    int64_t width = 0;
    st = next(p);
    if (st || p->words != 2 || !is(p, "width") || !integer(p->word[1], 1, 1 << 20, &width)) {
      return st ? st : bad(p, "expected 'width D'");
    }
    s->width = (int)width;
  }
  st = ph_ir_segment_open(s, in, p->err);
  return st ? ph_err_prefix(p->err, st, "line %d", p->line) : parse_body(p, s);
}

static ph_status parse_loss(parser *p) {
  static const char *const loss[] = {"none", "softmax_cross_entropy", "mse"};
  for (int i = 0; i < 3; i++) {
    if (p->words == 2 && strcmp(loss[i], p->word[1]) == 0) {
      p->ir->loss = (ph_loss)i;
      ph_status st = next(p);
      return st || p->words == 0 ? st : bad(p, "nothing may follow the loss");
    }
  }
  return bad(p, "unknown loss");
}

static ph_status parse_all(parser *p) {
  ph_status st = parse_head(p);
  ph_shape shape = p->ir->input;
  while (!st) {
    st = next(p);
    if (st) {
      return st;
    }
    if (!is(p, "segment")) {
      break;
    }
    st = parse_segment(p, shape);
    shape = st ? shape : p->ir->segment[p->ir->nsegments - 1].out;
  }
  p->ir->output = shape;
  if (st) {
    return st;
  }
  return is(p, "loss") && p->ir->nsegments ? parse_loss(p) : bad(p, "expected 'segment' or 'loss'");
}

/* Only text that prints back to itself is canonical. */
static ph_status check_canonical(parser *p) {
  char *text = NULL;
  size_t n = 0;
  ph_status st = ph_ir_print(p->ir, &text, &n, p->err);
  if (st) {
    return st;
  }
  size_t i = 0;
  int line = 1;
  while (i < n && i < p->n && text[i] == p->text[i]) {
    line += text[i++] == '\n';
  }
  bool equal = i == n && i == p->n;
  ph_mem_free(text);
  return equal ? PH_OK
               : ph_err_set(p->err, PH_E_PARSE, "line %d: not in canonical form (spaces, numbers or order)", line);
}

ph_status ph_ir_parse(ph_ir **out, const char *text, size_t n, ph_err *err) {
  parser p = {.text = text, .n = n, .err = err};
  p.ir = ph_mem_new(1, sizeof *p.ir);
  if (!p.ir) {
    return ph_err_set(err, PH_E_NOMEM, "out of memory while reading a model");
  }
  ph_status st = parse_all(&p);
  st = st ? st : check_canonical(&p);
  if (st) {
    ph_ir_free(p.ir);
    return st;
  }
  *out = p.ir;
  return PH_OK;
}
