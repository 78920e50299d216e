/* parse.c - text to a model: its head, the heads of its segments, its loss. What is read is printed back and compared, so that
 * only canonical text is accepted. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

typedef struct parser {
  ph_ir_lines l;
  ph_ir *ir;
  int version;
} parser;

static ph_status parse_head(parser *p) {
  ph_ir_lines *l = &p->l;
  int64_t version = 0;
  ph_status st = ph_ir_next(l);
  if (st || l->words != 2 || !ph_ir_is(l, "phrun-ir") || !ph_ir_integer(l->word[1], 1, 2, &version)) {
    return st ? st : ph_ir_bad(l, "expected 'phrun-ir 1' or 'phrun-ir 2'");
  }
  p->version = (int)version;
  st = ph_ir_next(l);
  if (st || l->words != 2 || !ph_ir_is(l, "dtype") || !ph_dtype_find(l->word[1], &p->ir->dtype) ||
      p->ir->dtype > PH_F64) {
    return st ? st : ph_ir_bad(l, "expected 'dtype f32' or 'dtype f64'");
  }
  st = ph_ir_next(l);
  if (st || !ph_ir_is(l, "input") || !ph_ir_shape(l, 1, &p->ir->input)) {
    return st ? st : ph_ir_bad(l, "expected 'input POSITIONS FEATURES' or 'input HEIGHT WIDTH FEATURES'");
  }
  return PH_OK;
}

/* ---- heads of segments ---- */

/* A stream over time of version 1: its head's second line. */
static ph_status parse_width(parser *p, ph_ir_segment *s) {
  int64_t width = 0;
  ph_status st = ph_ir_next(&p->l);
  if (st || p->l.words != 2 || !ph_ir_is(&p->l, "width") || !ph_ir_integer(p->l.word[1], 1, 1 << 20, &width)) {
    return st ? st : ph_ir_bad(&p->l, "expected 'width D'");
  }
  s->state = ph_shape_sample(1, 1, width);
  return PH_OK;
}

static ph_status parse_kind(parser *p, ph_ir_segment *s) {
  const ph_ir_lines *l = &p->l;
  bool once = l->words == 3 && strcmp(l->word[1], "once") == 0;
  bool time = l->words == 3 && strcmp(l->word[1], "time") == 0;
  bool depth = l->words == 3 && strcmp(l->word[1], "depth") == 0;
  if (!(once || time || depth) || !ph_ir_integer(l->word[2], 1, once ? 1 : PH_IR_MAX_REPEAT, &s->repeat)) {
    return ph_ir_bad(l, "expected 'segment once 1', 'segment depth N' or 'segment time N'");
  }
  snprintf(s->name, sizeof s->name, "s%d", p->ir->nsegments);
  s->once = once;
  s->tied = s->driven = s->from_zero = time;
  return time ? parse_width(p, s) : PH_OK;
}

/* The words after `repeat N`. */
static bool parse_properties(const ph_ir_lines *l, ph_ir_segment *s) {
  int at = 4;
  s->tied = at < l->words && strcmp(l->word[at], "tied") == 0;
  at += s->tied;
  s->driven = at < l->words && strcmp(l->word[at], "driven") == 0;
  at += s->driven;
  if (at == l->words) {
    return true;
  }
  s->from_zero = at + 2 < l->words && strcmp(l->word[at], "from") == 0 && strcmp(l->word[at + 1], "zero") == 0;
  return s->from_zero && ph_ir_shape(l, at + 2, &s->state);
}

static ph_status parse_stream(parser *p, ph_ir_segment *s) {
  const ph_ir_lines *l = &p->l;
  if (l->words < 2 || !ph_ir_name(l->word[1], s->name)) {
    return ph_ir_bad(l, "expected 'segment NAME'");
  }
  s->once = l->words == 2;
  s->repeat = 1;
  if (s->once || (l->words >= 4 && strcmp(l->word[2], "repeat") == 0 &&
                  ph_ir_integer(l->word[3], 1, PH_IR_MAX_REPEAT, &s->repeat) && parse_properties(l, s))) {
    return PH_OK;
  }
  return ph_ir_bad(l, "expected 'segment NAME repeat N [tied] [driven] [from zero SHAPE]'");
}

/* Segments of one name share parameters: they need one number of sets. */
static ph_status check_namesake(parser *p, const ph_ir_segment *s) {
  const ph_ir_segment *t = ph_ir_namesake(p->ir, s);
  if (!t || ph_ir_sets(t) == ph_ir_sets(s)) {
    return PH_OK;
  }
  return ph_err_set(
      p->l.err, PH_E_SHAPE,
      "line %d: segments of one name share their parameters, but one '%s' has %lld sets of them and another %lld",
      p->l.line, s->name, (long long)ph_ir_sets(t), (long long)ph_ir_sets(s));
}

static ph_status parse_segment(parser *p, ph_shape in) {
  ph_ir *ir = p->ir;
  ph_status st =
      ph_ir_room(&p->l, "segments", (void **)&ir->segment, ir->nsegments, PH_IR_MAX_SEGMENTS, sizeof *ir->segment);
  if (st) {
    return st;
  }
  ph_ir_segment *s = &ir->segment[ir->nsegments++];
  memset(s, 0, sizeof *s);
  s->read = -1;
  st = p->version == 1 ? parse_kind(p, s) : parse_stream(p, s);
  st = st ? st : check_namesake(p, s);
  if (st) {
    return st;
  }
  st = ph_ir_segment_open(s, in, p->l.err);
  return st ? ph_err_prefix(p->l.err, st, "line %d", p->l.line) : ph_ir_segment_body(&p->l, ir, s, p->version);
}

/* ---- the loss ---- */

static ph_status bad_attr(parser *p, int a, const char *value) {
  return ph_err_set(p->l.err, PH_E_PARSE, "line %d: %s: %s cannot be %s", p->l.line, p->ir->loss->name,
                    p->ir->loss->attr[a].name, value);
}

/* The value of attribute a: a number, or the name of a list. */
static ph_status parse_value(parser *p, int a, const char *w) {
  ph_ir *ir = p->ir;
  const ph_loss_attr *t = &ir->loss->attr[a];
  if (!t->list) {
    return ph_ir_finite(w, &ir->loss_attr[a]) && ph_loss_allows(t, ir->loss_attr[a]) ? PH_OK : bad_attr(p, a, w);
  }
  ir->loss_table[a] = *w == '@' ? ph_ir_table_find(&ir->tables, w + 1) : -1;
  if (ir->loss_table[a] < 0) {
    return ph_err_set(p->l.err, PH_E_PARSE, "line %d: %s: expected %s=@TABLE", p->l.line, ir->loss->name, t->name);
  }
  const ph_ir_table *list = &ir->tables.at[ir->loss_table[a]];
  for (int64_t i = 0; i < list->n; i++) {
    if (!ph_loss_allows(t, list->value[i])) {
      char number[32];
      ph_ir_number(list->value[i], number);
      return bad_attr(p, a, number);
    }
  }
  return PH_OK;
}

static ph_status parse_loss_attrs(parser *p) {
  ph_ir *ir = p->ir;
  int at = 2;
  ph_status st = PH_OK;
  for (int a = 0; a < PH_LOSS_ATTRS; a++) {
    const ph_loss_attr *t = &ir->loss->attr[a];
    size_t len = t->name ? strlen(t->name) : 0;
    ir->loss_attr[a] = t->initial;
    ir->loss_table[a] = -1;
    if (!st && len && at < p->l.words && strncmp(p->l.word[at], t->name, len) == 0 && p->l.word[at][len] == '=') {
      st = parse_value(p, a, p->l.word[at++] + len + 1);
    }
  }
  return st || at == p->l.words ? st : ph_ir_bad(&p->l, "unknown attribute of the loss, or out of order");
}

/* The lists of the loss, if any, then its line, which is the last. */
static ph_status parse_loss(parser *p) {
  ph_status st = PH_OK;
  while (!st && p->version > 1 && ph_ir_is(&p->l, "table")) {
    st = ph_ir_table_read(&p->l, &p->ir->tables, p->ir->output.cols, "features of the output");
    st = st ? st : ph_ir_next(&p->l);
  }
  if (st || !ph_ir_is(&p->l, "loss") || !p->ir->nsegments) {
    return st ? st : ph_ir_bad(&p->l, "expected 'segment' or 'loss'");
  }
  p->ir->loss = p->l.words > 1 ? ph_loss_find(p->l.word[1]) : NULL;
  if (!p->ir->loss) {
    return ph_ir_bad(&p->l, "unknown loss");
  }
  st = parse_loss_attrs(p);
  st = st ? st : ph_ir_next(&p->l);
  return st || p->l.words == 0 ? st : ph_ir_bad(&p->l, "nothing may follow the loss");
}

/* ---- the whole ---- */

static ph_status parse_all(parser *p) {
  ph_status st = parse_head(p);
  ph_shape shape = p->ir->input;
  while (!st) {
    st = ph_ir_next(&p->l);
    if (st) {
      return st;
    }
    if (!ph_ir_is(&p->l, "segment")) {
      break;
    }
    st = parse_segment(p, shape);
    shape = st ? shape : p->ir->segment[p->ir->nsegments - 1].out;
  }
  p->ir->output = shape;
  return st ? st : parse_loss(p);
}

/* Only text that prints back to itself is canonical. */
static ph_status check_canonical(const parser *p) {
  char *text = NULL;
  size_t n = 0;
  ph_status st = ph_ir_print(p->ir, &text, &n, p->l.err);
  if (st) {
    return st;
  }
  size_t i = 0;
  int line = 1;
  while (i < n && i < p->l.n && text[i] == p->l.text[i]) {
    line += text[i++] == '\n';
  }
  bool equal = i == n && i == p->l.n;
  ph_mem_free(text);
  if (equal) {
    return PH_OK;
  }
  if (line == 1) {
    return ph_err_set(p->l.err, PH_E_PARSE,
                      p->version == 1 ? "line 1: version 1 cannot say this model; it needs version 2"
                                      : "line 1: version 1 can say this model, so version 1 says it");
  }
  return ph_err_set(p->l.err, PH_E_PARSE, "line %d: not in canonical form (spaces, numbers or order)", line);
}

static _Atomic int64_t texts;

int64_t ph_ir_texts(void) { return texts; }

static ph_status read_model(ph_ir **out, const char *text, size_t n, bool canonical, ph_err *err) {
  parser p = {.l = {.text = text, .n = n, .err = err}};
  texts++;
  p.ir = ph_mem_new(1, sizeof *p.ir);
  if (!p.ir) {
    return ph_err_set(err, PH_E_NOMEM, "out of memory while reading a model");
  }
  ph_status st = parse_all(&p);
  st = st || !canonical ? st : check_canonical(&p);
  if (st) {
    ph_ir_free(p.ir);
    return st;
  }
  *out = p.ir;
  return PH_OK;
}

ph_status ph_ir_parse(ph_ir **out, const char *text, size_t n, ph_err *err) {
  return read_model(out, text, n, true, err);
}

ph_status ph_ir_read(ph_ir **out, const char *text, size_t n, ph_err *err) {
  return read_model(out, text, n, false, err);
}
