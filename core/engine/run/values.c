/* values.c - values of the parameter program by name, for measurement: the transport, the damping, their product. */
#include <stdio.h>

#include "base/mem.h"
#include "engine/run/plan_internal.h"

/* "cayley", "cayley2", ...: op and number among the nodes of that op in the segment. */
static int find_node(const ph_graph *g, const char *name) {
  for (int i = 0; i < g->n; i++) {
    if (!g->node[i].live || !ph_graph_is_param(g, i) || !g->node[i].op) {
      continue;
    }
    int number = 1;
    for (int j = 0; j < i; j++) {
      number += g->node[j].live && g->node[j].op == g->node[i].op;
    }
    char here[48];
    snprintf(here, sizeof here, number > 1 ? "%s%d" : "%s", g->node[i].op->name, number);
    if (strcmp(here, name) == 0) {
      return i;
    }
  }
  return -1;
}

static void list_names(const ph_plan *p, char *buf, size_t size) {
  size_t n = 0;
  for (int s = 0; s < p->nsegments; s++) {
    const ph_graph *g = &p->segment[s].prog.graph;
    for (int i = 0; i < g->n; i++) {
      if (g->node[i].live && ph_graph_is_param(g, i) && g->node[i].op && n < size) {
        n += (size_t)snprintf(buf + n, size - n, " %s.%s", p->ir->segment[s].name, g->node[i].op->name);
      }
    }
  }
}

/* Evaluates the op that makes `node` for one layer on plain matrices, recursively: measurement, not speed. */
static ph_status evaluate(const ph_plan *p, int segment, int node, int64_t layer, ph_tensor **out, ph_err *err) {
  const ph_graph *g = &p->segment[segment].prog.graph;
  const ph_gnode *n = &g->node[node];
  if (n->param >= 0) {
    const ph_param *q = p->segment[segment].param[n->param];
    ph_status st = ph_tensor_new(out, p->ir->dtype, 2, (int64_t[]){q->rows, q->cols}, err);
    if (!st) {
      memcpy((*out)->data, ph_plan_at(p, q->value, layer * q->rows * q->cols), ph_tensor_bytes(*out));
    }
    return st;
  }
  ph_tensor *arg[PH_OP_ARGS] = {0};
  bool sample[PH_OP_ARGS] = {0};
  ph_status st = PH_OK;
  for (int a = 0; !st && a < n->nargs; a++) {
    st = evaluate(p, segment, n->arg[a], layer, &arg[a], err);
  }
  double attr[PH_OP_ATTRS];
  ph_coefs_at(n->attr, layer, attr);
  st = st ? st : ph_op_eager(n->op, n->nargs, (const ph_tensor *const *)arg, sample, attr, out, err);
  for (int a = 0; a < PH_OP_ARGS; a++) {
    ph_tensor_free(arg[a]);
  }
  return st;
}

static ph_status collect(const ph_plan *p, int segment, int node, ph_tensor **out, ph_err *err) {
  ph_shape s = p->segment[segment].prog.graph.node[node].shape;
  ph_tensor *all = NULL;
  ph_status st = ph_tensor_new(&all, PH_F64, 3, (int64_t[]){p->segment[segment].layers, s.rows, s.cols}, err);
  for (int64_t l = 0; !st && l < p->segment[segment].layers; l++) {
    ph_tensor *one = NULL;
    st = evaluate(p, segment, node, l, &one, err);
    for (int64_t i = 0; !st && i < s.rows * s.cols; i++) {
      ph_tensor_set(all, l * s.rows * s.cols + i, ph_tensor_get(one, i));
    }
    ph_tensor_free(one);
  }
  if (st) {
    ph_tensor_free(all);
    return st;
  }
  *out = all;
  return PH_OK;
}

ph_status ph_plan_param_value(ph_plan *p, const char *name, ph_tensor **out, ph_err *err) {
  for (int s = 0; s < p->nsegments; s++) {
    const char *segment = p->ir->segment[s].name;
    size_t n = strlen(segment);
    bool here = strncmp(name, segment, n) == 0 && name[n] == '.';
    int node = here ? find_node(&p->segment[s].prog.graph, name + n + 1) : -1;
    if (node >= 0) {
      return collect(p, s, node, out, err);
    }
  }
  char names[256] = "";
  list_names(p, names, sizeof names);
  return ph_err_set(err, PH_E_NOTFOUND, "no parameter value '%s'; there are:%s", name, names);
}
