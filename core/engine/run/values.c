/* values.c - values of the parameter program: by name, for measurement (the transport, the damping, their product), and the first
 * that is not finite, for the story of a run that diverged. */
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

/* ---- the values of one layer, node by node on plain matrices: not for speed ---- */

typedef struct layer {
  const ph_plan *p;
  const ph_segment *segment;
  int64_t number;
  ph_tensor **value; /* of each node so far */
} layer;

static ph_status leaf_value(const layer *l, const ph_param *q, ph_tensor **out, ph_err *err) {
  ph_status st = ph_tensor_new(out, l->p->ir->dtype, 2, (int64_t[]){q->rows, q->cols}, err);
  if (!st) {
    memcpy((*out)->data, ph_plan_at(l->p, q->value, l->number * q->rows * q->cols), ph_tensor_bytes(*out));
  }
  return st;
}

static ph_status op_value(const layer *l, const ph_gnode *n, ph_tensor **out, ph_err *err) {
  const ph_tensor *arg[PH_OP_ARGS] = {0};
  bool sample[PH_OP_ARGS] = {0};
  double attr[PH_OP_ATTRS];
  ph_tensor *made = NULL;
  for (int a = 0; a < n->nargs; a++) {
    arg[a] = l->value[n->arg[a]];
  }
  ph_coefs_at(n->attr, l->number, attr);
  ph_status st = ph_op_eager(n->op, n->nargs, arg, sample, attr, &made, err);
  st = st ? st : ph_tensor_cast(out, made, l->p->ir->dtype, err); /* without arguments it is float64 */
  ph_tensor_free(made);
  return st;
}

static bool is_value(const layer *l, int node) {
  const ph_graph *g = &l->segment->prog.graph;
  return g->node[node].live && ph_graph_is_param(g, node);
}

/* Nodes before `node` have their values. */
static ph_status next_value(const layer *l, int node, ph_err *err) {
  const ph_gnode *n = &l->segment->prog.graph.node[node];
  return n->param >= 0 ? leaf_value(l, l->segment->param[n->param], &l->value[node], err)
                       : op_value(l, n, &l->value[node], err);
}

static ph_status layer_open(layer *l, const ph_plan *p, int segment, int64_t number, ph_err *err) {
  *l = (layer){.p = p, .segment = &p->segment[segment], .number = number};
  l->value = ph_mem_new((size_t)l->segment->prog.graph.n, sizeof *l->value);
  return l->value ? PH_OK : ph_err_set(err, PH_E_NOMEM, "out of memory for parameter values");
}

static void layer_close(layer *l) {
  for (int i = 0; l->value && i < l->segment->prog.graph.n; i++) {
    ph_tensor_free(l->value[i]);
  }
  ph_mem_free(l->value);
}

/* ---- one node, all layers ---- */

static ph_status collect_layer(const ph_plan *p, int segment, int node, int64_t number, ph_tensor *all, ph_err *err) {
  layer l;
  ph_status st = layer_open(&l, p, segment, number, err);
  for (int i = 0; !st && i <= node; i++) {
    st = is_value(&l, i) ? next_value(&l, i, err) : PH_OK;
  }
  int64_t n = st ? 0 : ph_tensor_count(l.value[node]);
  for (int64_t i = 0; i < n; i++) {
    ph_tensor_set(all, number * n + i, ph_tensor_get(l.value[node], i));
  }
  layer_close(&l);
  return st;
}

static ph_status collect(const ph_plan *p, int segment, int node, ph_tensor **out, ph_err *err) {
  ph_shape s = p->segment[segment].prog.graph.node[node].shape;
  ph_tensor *all = NULL;
  ph_status st = ph_tensor_new(&all, PH_F64, 3, (int64_t[]){p->segment[segment].layers, s.rows, s.cols}, err);
  for (int64_t l = 0; !st && l < p->segment[segment].layers; l++) {
    st = collect_layer(p, segment, node, l, all, err);
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

/* ---- the cause of a value that is not finite ---- */

/* The op that makes a layer's first value that is not finite, NULL when there is none (or no memory to find it). */
static const ph_op *first_bad(const ph_plan *p, int segment, int64_t number) {
  layer l;
  ph_err err;
  const ph_op *bad = NULL;
  const ph_graph *g = &p->segment[segment].prog.graph;
  ph_status st = layer_open(&l, p, segment, number, &err);
  for (int i = 0; !st && !bad && i < g->n; i++) {
    if (is_value(&l, i)) {
      st = next_value(&l, i, &err);
      bad = !st && ph_tensor_first_nonfinite(l.value[i]) >= 0 ? g->node[i].op : NULL;
    }
  }
  layer_close(&l);
  return bad;
}

void ph_values_blame(const ph_plan *p, ph_result *res) {
  if (res->bad_segment >= 0 && res->bad_step >= 0) {
    res->bad_op = first_bad(p, (int)res->bad_segment, p->segment[res->bad_segment].tied ? 0 : res->bad_step);
    return;
  }
  for (int s = 0; s < p->nsegments; s++) { /* what is read or added to the loss may be bad while states are not */
    for (int64_t l = 0; l < p->segment[s].layers && !res->bad_op; l++) {
      res->bad_op = first_bad(p, s, l);
      res->bad_segment = res->bad_op ? s : res->bad_segment;
      res->bad_step = res->bad_op ? l : res->bad_step;
    }
  }
}
