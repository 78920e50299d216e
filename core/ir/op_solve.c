/* op_solve.c - inverses, systems and Cholesky factors of parameter matrices, by elimination with pivots (docs/laws.md, 12).
 *
 *   X = A^{-1}     G_A = - X^T G X^T
 *   X = A^{-1} B   G_B = A^{-T} G,  G_A = - G_B X^T
 *   A = L L^T      kernels/isa_cholesky.h
 *
 * A matrix that cannot be inverted or factored gives NaN, which reaches the state: the run diverges, and says why.
 */
#include "ir/op_internal.h"

static void *at(const ph_call *c, const ph_opnd *o, int64_t m) { return ph_op_at_step(c, o, m); }

void ph_op_inverse(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  c->k->solve(c->count, d, d, c->in[0].p, c->in[0].step, NULL, 0, c->out.p, c->out.step, c->scratch);
}

void ph_op_inverse_bwd(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  void *Xt = c->scratch;
  void *T = ph_op_scratch(c, d * d);
  void *minus = ph_op_scratch(c, 2 * d * d);
  for (int64_t m = 0; m < c->count; m++) {
    void *g = at(c, &c->gin[0], m);
    c->k->transpose(d, d, at(c, &c->out, m), d, Xt, d);
    c->k->gemm(d, d, d, at(c, &c->gout, m), d, 1, Xt, d, NULL, 0, NULL, T, d);
    c->k->axpby(1, d * d, -1.0, Xt, d * d, 0.0, NULL, 0, minus, d * d);
    c->k->gemm(d, d, d, minus, d, 1, T, d, c->acc[0] ? g : NULL, d, NULL, g, d);
  }
}

void ph_op_solve(const ph_call *c) {
  c->k->solve(c->count, c->out_shape.rows, c->out_shape.cols, c->in[0].p, c->in[0].step, c->in[1].p, c->in[1].step,
              c->out.p, c->out.step, c->scratch);
}

void ph_op_solve_bwd(const ph_call *c) {
  int64_t d = c->out_shape.rows;
  int64_t n = c->out_shape.cols;
  void *At = c->scratch;
  void *Y = ph_op_scratch(c, d * d);
  void *Xt = ph_op_scratch(c, d * d + d * n);
  void *rest = ph_op_scratch(c, d * d + 2 * d * n);
  for (int64_t m = 0; m < c->count; m++) {
    c->k->transpose(d, d, at(c, &c->in[0], m), d, At, d);
    c->k->solve(1, d, n, At, 0, at(c, &c->gout, m), 0, Y, 0, rest);
    if (c->gin[1].p) {
      void *g = at(c, &c->gin[1], m);
      c->k->axpby(d, n, 1.0, Y, n, 1.0, c->acc[1] ? g : NULL, n, g, n);
    }
    if (c->gin[0].p) {
      void *g = at(c, &c->gin[0], m);
      c->k->axpby(d, n, -1.0, Y, n, 0.0, NULL, 0, Y, n);
      c->k->transpose(d, n, at(c, &c->out, m), n, Xt, d);
      c->k->gemm(d, d, n, Y, n, 1, Xt, d, c->acc[0] ? g : NULL, d, NULL, g, d);
    }
  }
}

void ph_op_cholesky(const ph_call *c) {
  c->k->cholesky(c->count, c->out_shape.rows, c->in[0].p, c->in[0].step, c->out.p, c->out.step, c->scratch);
}

void ph_op_cholesky_bwd(const ph_call *c) {
  c->k->cholesky_bwd(c->count, c->out_shape.rows, c->out.p, c->out.step, c->gout.p, c->gout.step, c->gin[0].p,
                     c->gin[0].step, c->acc[0], c->scratch);
}
