/* print.c - a model as canonical text (grammar in ir.h), of version 1 whenever that can say it. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ir/ir_internal.h"

/* Significant digits of the shortest decimal that reads back as v. Fifteen digits name a normal double's decimal uniquely, so
 * that the zeros at their end can go; a subnormal has fewer digits to begin with. */
static int digits_of(double v) {
  char buf[32];
  if (fabs(v) < DBL_MIN) {
    for (int d = 1; d < 17; d++) {
      snprintf(buf, sizeof buf, "%.*g", d, v);
      if (strtod(buf, NULL) == v) {
        return d;
      }
    }
    return 17;
  }
  snprintf(buf, sizeof buf, "%.14e", v);
  if (strtod(buf, NULL) == v) {
    const char *e = strchr(buf, 'e');
    int zeros = 0;
    while (e[-1 - zeros] == '0') {
      zeros++;
    }
    return 15 - zeros;
  }
  snprintf(buf, sizeof buf, "%.15e", v);
  return strtod(buf, NULL) == v ? 16 : 17;
}

void ph_ir_number(double v, char buf[32]) { snprintf(buf, 32, "%.*g", digits_of(v), v); }

static void print_shape(ph_text *s, ph_shape shape) {
  if (shape.wide == 1) {
    ph_text_put(s, " %" PRId64 " %" PRId64, shape.pos, shape.cols);
  } else {
    ph_text_put(s, " %" PRId64 " %" PRId64 " %" PRId64, shape.pos / shape.wide, shape.wide, shape.cols);
  }
}

static void print_param(ph_text *s, const ph_ir_param *p) {
  char num[32];
  ph_ir_number(p->scale, num);
  bool scaled = ph_init_scaled(p->init);
  ph_text_put(s, "param %s %d %d %s%s%s\n", p->name, p->rows, p->cols, ph_init_name(p->init), scaled ? " " : "",
              scaled ? num : "");
}

static void print_tables(ph_text *s, const ph_ir_tables *t) {
  for (int k = 0; k < t->n; k++) {
    ph_text_put(s, "table %s", t->at[k].name);
    for (int64_t i = 0; i < t->at[k].n; i++) {
      char num[32];
      ph_ir_number(t->at[k].value[i], num);
      ph_text_put(s, " %s", num);
    }
    ph_text_put(s, "\n");
  }
}

static void print_node(ph_text *s, const ph_ir_segment *g, int i) {
  const ph_ir_node *n = &g->node[i];
  ph_text_put(s, "node %d %s", i, n->op->name);
  for (int a = 0; a < PH_OP_ATTRS && n->op->attr[a].name; a++) {
    char num[32];
    ph_ir_number(n->attr[a], num);
    bool table = n->table[a] >= 0;
    ph_text_put(s, " %s=%s%s", n->op->attr[a].name, table ? "@" : "", table ? g->tables.at[n->table[a]].name : num);
  }
  for (int a = 0; a < n->nargs; a++) {
    ph_text_put(s, " %c%d", n->arg[a].is_param ? 'p' : 'n', n->arg[a].index);
  }
  ph_text_put(s, "\n");
}

static void print_body(ph_text *s, const ph_ir_segment *g) {
  for (int i = 0; i < g->nparams; i++) {
    print_param(s, &g->param[i]);
  }
  print_tables(s, &g->tables);
  for (int i = 0; i < g->nnodes; i++) {
    print_node(s, g, i);
  }
  ph_text_put(s, "result n%d\n", g->result);
  if (g->read >= 0) {
    ph_text_put(s, "read n%d\n", g->read);
  }
  for (int i = 0; i < g->nterms; i++) {
    char num[32];
    ph_ir_number(g->term[i].weight, num);
    ph_text_put(s, "term %s n%d\n", num, g->term[i].node);
  }
  for (int i = 0; i < g->nobserves; i++) {
    ph_text_put(s, "observe %s n%d\n", g->observe[i].name, g->observe[i].node);
  }
  ph_text_put(s, "end\n");
}

/* ---- versions ---- */

static bool over_depth(const ph_ir_segment *g) { return !g->tied && !g->driven && !g->from_zero && g->read < 0; }

static bool over_time(const ph_ir_segment *g) {
  return !g->once && g->tied && g->driven && g->from_zero && g->state.pos == 1 && g->in.wide == 1;
}

static bool version_1_says(const ph_ir_segment *g, int number) {
  char name[PH_IR_NAME];
  snprintf(name, sizeof name, "s%d", number);
  return strcmp(g->name, name) == 0 && !g->tables.n && !g->nterms && !g->nobserves && (over_depth(g) || over_time(g));
}

/* Is an attribute of the loss another than its initial value? */
static bool is_said(const ph_ir *ir, int a) {
  return ir->loss_table[a] >= 0 || (!ir->loss->attr[a].list && ir->loss_attr[a] != ir->loss->attr[a].initial);
}

static bool loss_says_more(const ph_ir *ir) {
  bool more = ir->loss->since > 1 || ir->tables.n > 0;
  for (int a = 0; a < PH_LOSS_ATTRS && ir->loss->attr[a].name; a++) {
    more = more || is_said(ir, a);
  }
  return more;
}

static int version_of(const ph_ir *ir) {
  if (ir->input.wide > 1 || loss_says_more(ir)) {
    return 2;
  }
  for (int i = 0; i < ir->nsegments; i++) {
    if (!version_1_says(&ir->segment[i], i + 1)) {
      return 2;
    }
  }
  return 1;
}

static void print_kind(ph_text *s, const ph_ir_segment *g) {
  ph_text_put(s, "segment %s %" PRId64 "\n", g->once ? "once" : g->driven ? "time" : "depth", g->repeat);
  if (g->driven) {
    ph_text_put(s, "width %" PRId64 "\n", g->state.cols);
  }
}

static void print_properties(ph_text *s, const ph_ir_segment *g) {
  ph_text_put(s, "segment %s", g->name);
  if (!g->once) {
    ph_text_put(s, " repeat %" PRId64 "%s%s", g->repeat, g->tied ? " tied" : "", g->driven ? " driven" : "");
  }
  if (g->from_zero) {
    ph_text_put(s, " from zero");
    print_shape(s, g->state);
  }
  ph_text_put(s, "\n");
}

static void print_loss(ph_text *s, const ph_ir *ir) {
  print_tables(s, &ir->tables);
  ph_text_put(s, "loss %s", ir->loss->name);
  for (int a = 0; a < PH_LOSS_ATTRS && ir->loss->attr[a].name; a++) {
    char num[32];
    int table = ir->loss_table[a];
    ph_ir_number(ir->loss_attr[a], num);
    if (is_said(ir, a)) {
      ph_text_put(s, " %s=%s%s", ir->loss->attr[a].name, table < 0 ? "" : "@",
                  table < 0 ? num : ir->tables.at[table].name);
    }
  }
  ph_text_put(s, "\n");
}

ph_status ph_ir_print(const ph_ir *ir, char **text, size_t *n, ph_err *err) {
  ph_text s = {0};
  int version = version_of(ir);
  ph_text_put(&s, "phrun-ir %d\ndtype %s\ninput", version, ph_dtype_name(ir->dtype));
  print_shape(&s, ir->input);
  ph_text_put(&s, "\n");
  for (int i = 0; i < ir->nsegments; i++) {
    (version == 1 ? print_kind : print_properties)(&s, &ir->segment[i]);
    print_body(&s, &ir->segment[i]);
  }
  print_loss(&s, ir);
  return ph_text_take(&s, text, n, err);
}
