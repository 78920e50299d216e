/* op_place.c - ops that move numbers: diagonals, stacks, slices, blocks of positions, the mean over positions; forward and adjoint.
 *
 * The adjoint of a move is the move back; what nothing was taken from has the cotangent zero.
 */
#include "ir/op_internal.h"

/* A block of a call's operand: rows x cols, rows `ld` apart. */
typedef struct block {
  char *p;
  int64_t ld;
} block;

static block block_at(const ph_call *c, const ph_opnd *o, int64_t m, int64_t row, int64_t col) {
  return (block){ph_op_place(c, o, m, row, col), o->ld};
}

/* to (+)= a from */
static void move(const ph_call *c, int64_t rows, int64_t cols, double a, block from, block to, bool acc) {
  c->k->axpby(rows, cols, a, from.p, from.ld, 1.0, acc ? to.p : NULL, to.ld, to.p, to.ld);
}

static void clear(const ph_call *c, int64_t rows, int64_t cols, block b) {
  size_t size = ph_dtype_size(c->k->dtype);
  for (int64_t r = 0; r < rows; r++) {
    memset(b.p + (size_t)(r * b.ld) * size, 0, (size_t)cols * size);
  }
}

/* ---- diagonals: n numbers n + 1 apart ---- */

static block diagonal_of(const ph_call *c, const ph_opnd *o, int64_t m) {
  return (block){ph_op_place(c, o, m, 0, 0), o->ld + 1};
}

static block list_of(const ph_call *c, const ph_opnd *o, int64_t m) { return (block){ph_op_place(c, o, m, 0, 0), 1}; }

void ph_op_eye(const ph_call *c) {
  float one32 = 1;
  double one64 = 1;
  block one = {c->k->dtype == PH_F32 ? (char *)&one32 : (char *)&one64, 0};
  int64_t n = c->out_shape.rows;
  for (int64_t m = 0; m < c->count; m++) {
    clear(c, n, n, block_at(c, &c->out, m, 0, 0));
    move(c, n, 1, 1.0, one, diagonal_of(c, &c->out, m), false);
  }
}

void ph_op_diag(const ph_call *c) {
  int64_t n = c->out_shape.rows;
  for (int64_t m = 0; m < c->count; m++) {
    clear(c, n, n, block_at(c, &c->out, m, 0, 0));
    move(c, n, 1, 1.0, list_of(c, &c->in[0], m), diagonal_of(c, &c->out, m), false);
  }
}

void ph_op_diag_bwd(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    move(c, c->out_shape.rows, 1, 1.0, diagonal_of(c, &c->gout, m), list_of(c, &c->gin[0], m), c->acc[0]);
  }
}

void ph_op_diagonal(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    move(c, c->out_shape.cols, 1, 1.0, diagonal_of(c, &c->in[0], m), list_of(c, &c->out, m), false);
  }
}

void ph_op_diagonal_bwd(const ph_call *c) {
  int64_t n = c->out_shape.cols;
  for (int64_t m = 0; m < c->count; m++) {
    if (!c->acc[0]) {
      clear(c, n, n, block_at(c, &c->gin[0], m, 0, 0));
    }
    move(c, n, 1, 1.0, list_of(c, &c->gout, m), diagonal_of(c, &c->gin[0], m), true);
  }
}

/* ---- two values side by side, or one on top of the other ---- */

/* Where argument i begins in the output. */
static block part_of(const ph_call *c, const ph_opnd *joined, int64_t m, int i, bool on_top) {
  int64_t row = i && on_top ? c->in_shape[0].rows : 0;
  int64_t col = i && !on_top ? c->in_shape[0].cols : 0;
  return block_at(c, joined, m, row, col);
}

static void join(const ph_call *c, bool on_top) {
  for (int64_t m = 0; m < c->count; m++) {
    for (int i = 0; i < 2; i++) {
      move(c, c->in_shape[i].rows, c->in_shape[i].cols, 1.0, block_at(c, &c->in[i], m, 0, 0),
           part_of(c, &c->out, m, i, on_top), false);
    }
  }
}

static void join_bwd(const ph_call *c, bool on_top) {
  for (int64_t m = 0; m < c->count; m++) {
    for (int i = 0; i < 2; i++) {
      if (c->gin[i].p) {
        move(c, c->in_shape[i].rows, c->in_shape[i].cols, 1.0, part_of(c, &c->gout, m, i, on_top),
             block_at(c, &c->gin[i], m, 0, 0), c->acc[i]);
      }
    }
  }
}

void ph_op_join_rows(const ph_call *c) { join(c, true); }
void ph_op_join_rows_bwd(const ph_call *c) { join_bwd(c, true); }
void ph_op_join_cols(const ph_call *c) { join(c, false); }
void ph_op_join_cols_bwd(const ph_call *c) { join_bwd(c, false); }

/* ---- some of the columns ---- */

static int64_t first_column(const ph_call *c) { return (int64_t)c->attr[0] - 1; }

void ph_op_slice(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    move(c, c->out_shape.rows, c->out_shape.cols, 1.0, block_at(c, &c->in[0], m, 0, first_column(c)),
         block_at(c, &c->out, m, 0, 0), false);
  }
}

void ph_op_slice_bwd(const ph_call *c) {
  for (int64_t m = 0; m < c->count; m++) {
    if (!c->acc[0]) {
      clear(c, c->in_shape[0].rows, c->in_shape[0].cols, block_at(c, &c->gin[0], m, 0, 0));
    }
    move(c, c->out_shape.rows, c->out_shape.cols, 1.0, block_at(c, &c->gout, m, 0, 0),
         block_at(c, &c->gin[0], m, 0, first_column(c)), true);
  }
}

/* ---- blocks of positions ---- */

static int64_t samples_of(const ph_call *c) { return c->out_shape.rows / c->out_shape.pos; }

/* Moves every position of the unfolded value to its place among the features of a folded position, or back. s: the unfolded shape. */
static void regroup(const ph_call *c, ph_shape s, const ph_opnd *flat, const ph_opnd *folded, bool to_folded,
                    bool acc) {
  int64_t lines = (int64_t)c->attr[0];
  int64_t wide = (int64_t)c->attr[1];
  int64_t n = samples_of(c);
  for (int64_t p = 0; p < s.pos; p++) {
    int64_t y = p / s.wide;
    int64_t x = p % s.wide;
    int64_t q = y / lines * (s.wide / wide) + x / wide;
    int64_t nth = y % lines * wide + x % wide;
    block one = block_at(c, flat, 0, p * n, 0);
    block part = block_at(c, folded, 0, q * n, nth * s.cols);
    move(c, n, s.cols, 1.0, to_folded ? one : part, to_folded ? part : one, acc);
  }
}

void ph_op_fold(const ph_call *c) { regroup(c, c->in_shape[0], &c->in[0], &c->out, true, false); }
void ph_op_fold_bwd(const ph_call *c) { regroup(c, c->in_shape[0], &c->gin[0], &c->gout, false, c->acc[0]); }
void ph_op_unfold(const ph_call *c) { regroup(c, c->out_shape, &c->out, &c->in[0], false, false); }
void ph_op_unfold_bwd(const ph_call *c) { regroup(c, c->out_shape, &c->gout, &c->gin[0], true, c->acc[0]); }

/* ---- mean over positions ---- */

void ph_op_mean_positions(const ph_call *c) {
  int64_t n = samples_of(c);
  for (int64_t p = 0; p < c->in_shape[0].pos; p++) {
    move(c, n, c->out_shape.cols, 1.0 / (double)c->in_shape[0].pos, block_at(c, &c->in[0], 0, p * n, 0),
         block_at(c, &c->out, 0, 0, 0), p > 0);
  }
}

void ph_op_mean_positions_bwd(const ph_call *c) {
  int64_t n = samples_of(c);
  for (int64_t p = 0; p < c->in_shape[0].pos; p++) {
    move(c, n, c->out_shape.cols, 1.0 / (double)c->in_shape[0].pos, block_at(c, &c->gout, 0, 0, 0),
         block_at(c, &c->gin[0], 0, p * n, 0), c->acc[0]);
  }
}
