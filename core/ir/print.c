/* print.c - a model as canonical text (grammar in ir.h). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

typedef struct sink {
  char *text;
  size_t n, room;
  bool failed;
} sink;

static void put(sink *s, const char *fmt, ...) PH_PRINTF(2, 3);
static void put(sink *s, const char *fmt, ...) {
  char line[256];
  va_list ap;
  va_start(ap, fmt);
  int len = vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  if (s->n + (size_t)len + 1 > s->room && !s->failed) {
    size_t room = 2 * s->room + (size_t)len + 256;
    char *grown = ph_mem_grow(s->text, s->n, room, 1);
    s->failed = !grown;
    s->text = grown ? grown : s->text;
    s->room = grown ? room : s->room;
  }
  if (!s->failed) {
    memcpy(s->text + s->n, line, (size_t)len + 1);
    s->n += (size_t)len;
  }
}

void ph_ir_number(double v, char buf[32]) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buf, 32, "%.*g", digits, v);
    if (strtod(buf, NULL) == v) {
      return;
    }
  }
}

static void print_param(sink *s, const ph_ir_param *p) {
  static const char *const name[] = {"zeros", "ones", "constant", "normal", "uniform"};
  char num[32];
  ph_ir_number(p->scale, num);
  bool scaled = p->init != PH_INIT_ZEROS && p->init != PH_INIT_ONES;
  put(s, "param %s %d %d %s%s%s\n", p->name, p->rows, p->cols, name[p->init], scaled ? " " : "", scaled ? num : "");
}

static void print_node(sink *s, int i, const ph_ir_node *n) {
  put(s, "node %d %s", i, n->op->name);
  for (int a = 0; a < PH_OP_ATTRS && n->op->attr[a]; a++) {
    char num[32];
    ph_ir_number(n->attr[a], num);
    put(s, " %s=%s", n->op->attr[a], num);
  }
  for (int a = 0; a < n->nargs; a++) {
    put(s, " %c%d", n->arg[a].is_param ? 'p' : 'n', n->arg[a].index);
  }
  put(s, "\n");
}

static void print_segment(sink *s, const ph_ir_segment *g) {
  static const char *const kind[] = {"once", "depth", "time"};
  put(s, "segment %s %" PRId64 "\n", kind[g->kind], g->repeat);
  if (g->kind == PH_SEG_TIME) {
    put(s, "width %d\n", g->width);
  }
  for (int i = 0; i < g->nparams; i++) {
    print_param(s, &g->param[i]);
  }
  for (int i = 0; i < g->nnodes; i++) {
    print_node(s, i, &g->node[i]);
  }
  put(s, "result n%d\n", g->result);
  if (g->read >= 0) {
    put(s, "read n%d\n", g->read);
  }
  put(s, "end\n");
}

ph_status ph_ir_print(const ph_ir *ir, char **text, size_t *n, ph_err *err) {
  static const char *const loss[] = {"none", "softmax_cross_entropy", "mse"};
  sink s = {0};
  put(&s, "phrun-ir 1\ndtype %s\ninput %" PRId64 " %" PRId64 "\n", ph_dtype_name(ir->dtype), ir->input.pos,
      ir->input.cols);
  for (int i = 0; i < ir->nsegments; i++) {
    print_segment(&s, &ir->segment[i]);
  }
  put(&s, "loss %s\n", loss[ir->loss]);
  if (s.failed) {
    ph_mem_free(s.text);
    return ph_err_set(err, PH_E_NOMEM, "out of memory while printing a model");
  }
  *text = s.text;
  *n = s.n;
  return PH_OK;
}
