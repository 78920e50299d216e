/* op_tile.c - ops on values of either kind (scale, add, mul, activations) and on sample values (apply, bias, layernorm).
 *
 * Rows are samples times positions for sample values; parameter matrices run one by one (`count`).
 */
#include "ir/op_internal.h"

static int64_t rows_of(const ph_call *c) { return c->out_shape.rows; }
static int64_t cols_of(const ph_call *c) { return c->out_shape.cols; }

/* gin[i] (+)= a * gout for every matrix of the call. */
static void pass(const ph_call *c, int i, double a) {
  for (int64_t m = 0; c->gin[i].p && m < c->count; m++) {
    void *g = ph_op_at_step(c, &c->gin[i], m);
    c->k->axpby(rows_of(c), cols_of(c), a, ph_op_at_step(c, &c->gout, m), c->gout.ld, 1.0, c->acc[i] ? g : NULL,
                c->gin[i].ld, g, c->gin[i].ld);
  }
}

static void combine(const ph_call *c, double a, double b) {
  for (int64_t m = 0; m < c->count; m++) {
    const void *y = c->in[1].p ? ph_op_at_step(c, &c->in[1], m) : NULL;
    c->k->axpby(rows_of(c), cols_of(c), a, ph_op_at_step(c, &c->in[0], m), c->in[0].ld, b, y, c->in[1].ld,
                ph_op_at_step(c, &c->out, m), c->out.ld);
  }
}

void ph_op_scale(const ph_call *c) { combine(c, c->attr[0], 0.0); }
void ph_op_scale_bwd(const ph_call *c) { pass(c, 0, c->attr[0]); }
void ph_op_add(const ph_call *c) { combine(c, 1.0, 1.0); }
void ph_op_sub(const ph_call *c) { combine(c, 1.0, -1.0); }

void ph_op_add_bwd(const ph_call *c) {
  pass(c, 0, 1.0);
  pass(c, 1, 1.0);
}

void ph_op_sub_bwd(const ph_call *c) {
  pass(c, 0, 1.0);
  pass(c, 1, -1.0);
}

void ph_op_mul(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->mul(rows_of(c), cols_of(c), ph_op_at_step(c, &c->in[0], m), c->in[0].ld, ph_op_at_step(c, &c->in[1], m),
              c->in[1].ld, ph_op_at_step(c, &c->out, m), c->out.ld, 0);
  }
}

void ph_op_mul_bwd(const ph_call *c) {
  for (int i = 0; i < 2; i++) {
    const ph_opnd *other = &c->in[1 - i];
    for (int64_t m = 0; c->gin[i].p && m < c->count; m++) {
      c->k->mul(rows_of(c), cols_of(c), ph_op_at_step(c, &c->gout, m), c->gout.ld, ph_op_at_step(c, other, m),
                other->ld, ph_op_at_step(c, &c->gin[i], m), c->gin[i].ld, c->acc[i]);
    }
  }
}

void ph_op_act(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->act(c->op->act, rows_of(c), cols_of(c), ph_op_at_step(c, &c->in[0], m), c->in[0].ld,
              ph_op_at_step(c, &c->out, m), c->out.ld);
  }
}

void ph_op_act_bwd(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    c->k->act_bwd(c->op->act, rows_of(c), cols_of(c), ph_op_at_step(c, &c->in[0], m), c->in[0].ld,
                  ph_op_at_step(c, &c->out, m), c->out.ld, ph_op_at_step(c, &c->gout, m), c->gout.ld,
                  ph_op_at_step(c, &c->gin[0], m), c->gin[0].ld, c->acc[0]);
  }
}

/* ---- sample values ---- */

/* y = x M^T. Compiled streams use packed transposes instead (engine/run/stream.c); this is the eager form. */
void ph_op_apply(const ph_call *c) {
  int64_t out = c->in_shape[0].rows;
  int64_t in = c->in_shape[0].cols;
  c->k->transpose(out, in, c->in[0].p, c->in[0].ld, c->scratch, out);
  c->k->gemm(rows_of(c), out, in, c->in[1].p, c->in[1].ld, 1, c->scratch, out, NULL, 0, NULL, c->out.p, c->out.ld);
}

void ph_op_apply_bwd(const ph_call *c) {
  int64_t out = c->in_shape[0].rows;
  int64_t in = c->in_shape[0].cols;
  if (c->gin[0].p) {
    c->k->gemm(out, in, rows_of(c), c->gout.p, 1, c->gout.ld, c->in[1].p, c->in[1].ld, c->acc[0] ? c->gin[0].p : NULL,
               c->gin[0].ld, NULL, c->gin[0].p, c->gin[0].ld);
  }
  if (c->gin[1].p) {
    c->k->gemm(rows_of(c), in, out, c->gout.p, c->gout.ld, 1, c->in[0].p, c->in[0].ld, c->acc[1] ? c->gin[1].p : NULL,
               c->gin[1].ld, NULL, c->gin[1].p, c->gin[1].ld);
  }
}

void ph_op_bias(const ph_call *c) {
  c->k->add_row(rows_of(c), cols_of(c), c->in[0].p, c->in[0].ld, c->in[1].p, c->out.p, c->out.ld);
}

void ph_op_bias_bwd(const ph_call *c) {
  pass(c, 0, 1.0);
  if (c->gin[1].p) {
    c->k->colsum(rows_of(c), cols_of(c), c->gout.p, c->gout.ld, c->gin[1].p, c->acc[1]);
  }
}

void ph_op_layernorm(const ph_call *c) {
  c->k->layernorm(rows_of(c), cols_of(c), c->attr[0], c->in[0].p, c->in[0].ld, c->in[1].p, c->in[2].p, c->out.p,
                  c->out.ld, c->aux.p);
}

void ph_op_layernorm_bwd(const ph_call *c) {
  c->k->layernorm_bwd(rows_of(c), cols_of(c), c->in[0].p, c->in[0].ld, c->in[1].p, c->aux.p, c->gout.p, c->gout.ld,
                      c->gin[0].p, c->gin[0].ld, c->acc[0], c->gin[1].p, c->gin[2].p, c->acc[1] || c->acc[2]);
}
