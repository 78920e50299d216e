/* op_pair.c - quotients, choices, stretched features, inner products and softmax; forward and adjoint.
 *
 *   z = x / y         g_x = g / y,  g_y = - g z / y
 *   z = c > 0 ? x : y g_x = c > 0 ? g : 0,  g_y = c > 0 ? 0 : g,  g_c = 0
 *   y = diag(v) x     g_x = v g,  g_v = sum over rows of g x
 *   z = <x, y>        g_x = g y,  g_y = g x
 *   y = softmax x     g_x = y (g - <y, g>)
 */
#include "ir/op_internal.h"

static int64_t rows_of(const ph_call *c) { return c->out_shape.rows; }
static int64_t cols_of(const ph_call *c) { return c->out_shape.cols; }

static void *at(const ph_call *c, const ph_opnd *o, int64_t m) { return ph_op_at_step(c, o, m); }

void ph_op_div(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->div(rows_of(c), cols_of(c), 1.0, at(c, &c->in[0], m), c->in[0].ld, NULL, 0, at(c, &c->in[1], m), c->in[1].ld,
              at(c, &c->out, m), c->out.ld, 0);
  }
}

void ph_op_div_bwd(const ph_call *c) {
  for (int i = 0; i < 2; i++) {
    for (int64_t m = 0; c->gin[i].p && m < c->count; m++) {
      c->k->div(rows_of(c), cols_of(c), i ? -1.0 : 1.0, at(c, &c->gout, m), c->gout.ld, i ? at(c, &c->out, m) : NULL,
                c->out.ld, at(c, &c->in[1], m), c->in[1].ld, at(c, &c->gin[i], m), c->gin[i].ld, c->acc[i]);
    }
  }
}

void ph_op_where(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->where(rows_of(c), cols_of(c), at(c, &c->in[0], m), c->in[0].ld, at(c, &c->in[1], m), c->in[1].ld,
                at(c, &c->in[2], m), c->in[2].ld, at(c, &c->out, m), c->out.ld, 0);
  }
}

/* Argument 0, the condition, gets what neither side gives: zero. */
void ph_op_where_bwd(const ph_call *c) {
  for (int i = 0; i < 3; i++) {
    for (int64_t m = 0; c->gin[i].p && m < c->count; m++) {
      const void *g = at(c, &c->gout, m);
      c->k->where(rows_of(c), cols_of(c), at(c, &c->in[0], m), c->in[0].ld, i == 1 ? g : NULL, c->gout.ld,
                  i == 2 ? g : NULL, c->gout.ld, at(c, &c->gin[i], m), c->gin[i].ld, c->acc[i]);
    }
  }
}

void ph_op_softmax(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->softmax(rows_of(c), cols_of(c), at(c, &c->in[0], m), c->in[0].ld, at(c, &c->out, m), c->out.ld);
  }
}

void ph_op_softmax_bwd(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->softmax_bwd(rows_of(c), cols_of(c), at(c, &c->out, m), c->out.ld, at(c, &c->gout, m), c->gout.ld,
                      at(c, &c->gin[0], m), c->gin[0].ld, c->acc[0]);
  }
}

void ph_op_stretch(const ph_call *c) {
  c->k->mul_row(rows_of(c), cols_of(c), c->in[0].p, c->in[0].ld, c->in[1].p, c->out.p, c->out.ld, 0);
}

void ph_op_stretch_bwd(const ph_call *c) {
  if (c->gin[0].p) {
    c->k->mul_row(rows_of(c), cols_of(c), c->gout.p, c->gout.ld, c->in[1].p, c->gin[0].p, c->gin[0].ld, c->acc[0]);
  }
  if (c->gin[1].p) {
    c->k->coldot(rows_of(c), cols_of(c), c->gout.p, c->gout.ld, c->in[0].p, c->in[0].ld, c->gin[1].p, c->acc[1]);
  }
}

void ph_op_dot(const ph_call *c) {
  c->k->rowdot(rows_of(c), c->in_shape[0].cols, c->in[0].p, c->in[0].ld, c->in[1].p, c->in[1].ld, c->out.p, c->out.ld);
}

void ph_op_dot_bwd(const ph_call *c) {
  for (int i = 0; i < 2; i++) {
    const ph_opnd *other = &c->in[1 - i];
    if (c->gin[i].p) {
      c->k->mul_col(rows_of(c), c->in_shape[0].cols, other->p, other->ld, c->gout.p, c->gout.ld, c->gin[i].p,
                    c->gin[i].ld, c->acc[i]);
    }
  }
}
