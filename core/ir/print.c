/* print.c - a model as canonical text (grammar in ir.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "ir/ir_internal.h"

void ph_ir_number(double v, char buf[32]) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buf, 32, "%.*g", digits, v);
    if (strtod(buf, NULL) == v) {
      return;
    }
  }
}

static void print_param(ph_text *s, const ph_ir_param *p) {
  static const char *const name[] = {"zeros", "ones", "constant", "normal", "uniform"};
  char num[32];
  ph_ir_number(p->scale, num);
  bool scaled = p->init != PH_INIT_ZEROS && p->init != PH_INIT_ONES;
  ph_text_put(s, "param %s %d %d %s%s%s\n", p->name, p->rows, p->cols, name[p->init], scaled ? " " : "",
              scaled ? num : "");
}

static void print_node(ph_text *s, int i, const ph_ir_node *n) {
  ph_text_put(s, "node %d %s", i, n->op->name);
  for (int a = 0; a < PH_OP_ATTRS && n->op->attr[a].name; a++) {
    char num[32];
    ph_ir_number(n->attr[a], num);
    ph_text_put(s, " %s=%s", n->op->attr[a].name, num);
  }
  for (int a = 0; a < n->nargs; a++) {
    ph_text_put(s, " %c%d", n->arg[a].is_param ? 'p' : 'n', n->arg[a].index);
  }
  ph_text_put(s, "\n");
}

static void print_segment(ph_text *s, const ph_ir_segment *g) {
  static const char *const kind[] = {"once", "depth", "time"};
  ph_text_put(s, "segment %s %" PRId64 "\n", kind[g->kind], g->repeat);
  if (g->kind == PH_SEG_TIME) {
    ph_text_put(s, "width %d\n", g->width);
  }
  for (int i = 0; i < g->nparams; i++) {
    print_param(s, &g->param[i]);
  }
  for (int i = 0; i < g->nnodes; i++) {
    print_node(s, i, &g->node[i]);
  }
  ph_text_put(s, "result n%d\n", g->result);
  if (g->read >= 0) {
    ph_text_put(s, "read n%d\n", g->read);
  }
  ph_text_put(s, "end\n");
}

ph_status ph_ir_print(const ph_ir *ir, char **text, size_t *n, ph_err *err) {
  static const char *const loss[] = {"none", "softmax_cross_entropy", "mse"};
  ph_text s = {0};
  ph_text_put(&s, "phrun-ir 1\ndtype %s\ninput %" PRId64 " %" PRId64 "\n", ph_dtype_name(ir->dtype), ir->input.pos,
              ir->input.cols);
  for (int i = 0; i < ir->nsegments; i++) {
    print_segment(&s, &ir->segment[i]);
  }
  ph_text_put(&s, "loss %s\n", loss[ir->loss]);
  return ph_text_take(&s, text, n, err);
}
