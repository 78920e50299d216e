/* products.c - matrices that act on the same state, side by side; and the sums their products accumulate into. */
#include "base/mem.h"
#include "engine/compile/program.h"

int ph_program_weight(ph_program *p, int node) {
  p->weight = ph_code_room(p->weight, p->nweights, &p->weight_room, sizeof *p->weight, &p->code.failed);
  if (p->code.failed) {
    return 0;
  }
  ph_shape s = p->graph.node[node].shape;
  p->weight[p->nweights] = (ph_weight){.node = node, .rows = s.rows, .cols = s.cols, .pack = -1, .grad = -1};
  return p->nweights++;
}

/* The node that ends a product member: the bias after an apply when that is its only use, else the apply. */
static int member_end(const ph_graph *g, int apply) {
  int user = g->node[apply].user;
  bool only = g->node[apply].uses == 1 && user >= 0;
  return only && ph_graph_role(g, user) == PH_ROLE_BIAS && g->node[user].arg[0] == apply ? user : apply;
}

int ph_program_member(const ph_program *p, int node) {
  for (int i = 0; i < p->nproducts; i++) {
    for (int m = 0; m < p->product[i].members; m++) {
      if (p->product[i].member[m] == node) {
        return i;
      }
    }
  }
  return -1;
}

static int product_of_input(ph_program *p, int input) {
  for (int i = 0; i < p->nproducts; i++) {
    if (p->product[i].input == input) {
      return i;
    }
  }
  p->product = ph_code_room(p->product, p->nproducts, &p->product_room, sizeof *p->product, &p->code.failed);
  if (p->code.failed) {
    return -1;
  }
  ph_product q = {
      .input = input, .wt = -1, .wn = -1, .wb = -1, .out = -1, .cot = -1, .K = p->graph.node[input].shape.cols};
  q.member = ph_mem_new((size_t)p->graph.n, sizeof *q.member);
  q.matrix = ph_mem_new((size_t)p->graph.n, sizeof *q.matrix);
  q.bias = ph_mem_new((size_t)p->graph.n, sizeof *q.bias);
  p->code.failed |= !q.member || !q.matrix || !q.bias;
  p->product[p->nproducts] = q;
  return p->nproducts++;
}

static void add_member(ph_program *p, int apply) {
  ph_graph *g = &p->graph;
  int i = product_of_input(p, g->node[apply].arg[1]);
  if (p->code.failed) {
    return;
  }
  ph_product *q = &p->product[i];
  int end = member_end(g, apply);
  q->member[q->members] = end;
  q->matrix[q->members] = ph_program_weight(p, g->node[apply].arg[0]);
  q->bias[q->members] = end != apply ? ph_program_weight(p, g->node[end].arg[1]) : -1;
  q->N += g->node[apply].shape.cols;
  q->members++;
}

static void lay_product(ph_program *p, ph_product *q) {
  q->wt = ph_code_take(&p->pack, q->N * q->K);
  q->wn = ph_code_take(&p->pack, q->N * q->K);
  q->grad = ph_code_take(&p->grad, q->N * q->K);
  int64_t row = 0;
  for (int m = 0; m < q->members; m++) {
    p->weight[q->matrix[m]].grad = q->grad + row * q->K;
    row += p->weight[q->matrix[m]].rows;
    if (q->bias[m] >= 0) {
      q->wb = q->wb >= 0 ? q->wb : ph_code_take(&p->pack, q->N);
      p->weight[q->bias[m]].grad = ph_code_take(&p->grad, p->weight[q->bias[m]].cols);
    }
  }
}

void ph_program_products(ph_program *p) {
  for (int i = 0; i < p->graph.n && !p->code.failed; i++) {
    if (p->graph.node[i].live && ph_graph_role(&p->graph, i) == PH_ROLE_APPLY) {
      add_member(p, i);
    }
  }
  for (int i = 0; i < p->nproducts && !p->code.failed; i++) {
    lay_product(p, &p->product[i]);
  }
}

/* ---- sums ---- */

int ph_graph_sum_terms(const ph_graph *g, int root, int *term) {
  int n = 0;
  for (int a = 0; a < 2; a++) {
    int t = g->node[root].arg[a];
    if (ph_graph_is_inner_add(g, t)) {
      n += ph_graph_sum_terms(g, t, term + n);
    } else {
      term[n++] = t;
    }
  }
  return n;
}

bool ph_program_absorbed(const ph_program *p, int node) {
  const ph_graph *g = &p->graph;
  if (ph_graph_is_inner_add(g, node)) {
    return true;
  }
  int i = ph_program_member(p, node);
  int user = g->node[node].user;
  return i >= 0 && p->product[i].members == 1 && g->node[node].uses == 1 && user >= 0 &&
         ph_graph_role(g, user) == PH_ROLE_ADD;
}
