/* kern.h - the table of numeric kernels: one source, compiled per instruction set and element type.
 *
 * `ph_kern_get(dtype)` returns the table chosen once at start: the best the CPU runs, or the one named by the
 * environment variable PHRUN_KERNELS (portable, avx2, avx512, neon; for tests; a name that does not run here gets one line
 * on stderr and the best table). All pointers are to elements of the table's
 * type (`real`), strides and leading dimensions count elements, matrices are row-major. Kernels allocate nothing, keep no
 * state, do no I/O, and treat zero sizes as "do nothing". Unless said otherwise an output must not overlap an input.
 *
 * Same bits on every table with fused multiply-add: sums over k run in order k = 0, 1, ... per output element, sums
 * over a row use 16 fixed partial sums (8 for float64) and a fixed tree, block sizes do not depend on the vector width,
 * exp, log, sin, tanh and friends are our own, sqrt and division are IEEE. The portable table is compiled without FMA contraction
 * for CPUs that lack it and may differ in the last bits.
 */
#ifndef PH_KERNELS_KERN_H
#define PH_KERNELS_KERN_H

#include <stdint.h>

#include "base/rng.h"
#include "base/tensor.h"
#include "kernels/activations.h"

/* Version of the arithmetic: raised when a change of the program rounds any step of a training differently. It stands in
 * provenance, in events and in checkpoints, and never in what a run's name is made of. */
enum { PH_ARITHMETIC = 1 };

/* What the difference d of an output and its target costs: d^2; d^2/2 up to |d| = delta and delta (|d| - delta/2) beyond;
 * |d|, with slope 0 at d = 0. */
typedef enum ph_misfit { PH_MISFIT_SQUARE, PH_MISFIT_HUBER, PH_MISFIT_ABS, PH_MISFIT_COUNT } ph_misfit;

typedef struct ph_adam {
  double lr, beta1, beta2, eps, weight_decay; /* decoupled (AdamW) decay: p -= lr * weight_decay * p */
  double c1, c2;                              /* 1/(1 - beta1^t), 1/(1 - beta2^t) */
} ph_adam;

typedef struct ph_kern {
  const char *name; /* "portable", "avx2", "avx512", "neon" */
  ph_dtype dtype;
  int lanes;      /* elements per vector register, for the report */
  double epsilon; /* from 1 to the next number of the element type */

  /* C (m,n; ldc) = D + bias + A B.  A(i,p) = A[i*ra + p*ca], so A or A^T for free; B (k,n; ldb) row-major.
   * D (m,n; ldd) or NULL for zero; D may be C itself (accumulate) or any other tile. bias (n) or NULL, added to every row.
   * Sum order: ((D + bias) + a0 b0) + a1 b1 ... 2 m n k flops. Any m, n, k >= 0 (n not a multiple of the vector: masked tail). */
  void (*gemm)(int64_t m, int64_t n, int64_t k, const void *A, int64_t ra, int64_t ca, const void *B, int64_t ldb,
               const void *D, int64_t ldd, const void *bias, void *C, int64_t ldc);

  /* B (n,m; ldb) = A^T, A (m,n; lda). */
  void (*transpose)(int64_t m, int64_t n, const void *A, int64_t lda, void *B, int64_t ldb);

  /* Tiles (rows, cols; own leading dimensions). Forward y = f(x), backward gx (+)= gy f': from x or from y as f's row says, the
   * other may be NULL. y may equal x; gx may equal gy unless acc. acc != 0: gx += . NaN stays NaN; |tanh| <= 1 always; an
   * infinity goes through the equation of the row, so gelu and silu of -infinity are NaN (0 times infinity). Accuracy: isa_math.h. */
  void (*act)(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy);
  void (*act_bwd)(ph_act f, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy,
                  const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc);

  /* z = a*x + b*y (y may be NULL: z = a*x). z may equal x or y. */
  void (*axpby)(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, double b, const void *y, int64_t ldy,
                void *z, int64_t ldz);
  /* z (+)= x .* y */
  void (*mul)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *z, int64_t ldz,
              int acc);
  /* z (+)= a (x .* w) ./ y; w NULL: a x ./ y. IEEE division: x/0 is infinite, 0/0 NaN. z may be any of the others. */
  void (*div)(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, const void *w, int64_t ldw,
              const void *y, int64_t ldy, void *z, int64_t ldz, int acc);
  /* z (+)= x where c > 0, y where it is not (NULL: 0), NaN where c is NaN. z may be any of the others. */
  void (*where)(int64_t rows, int64_t cols, const void *c, int64_t ldc, const void *x, int64_t ldx, const void *y,
                int64_t ldy, void *z, int64_t ldz, int acc);
  /* z (+)= x .* v for every row, v (cols); z (+)= s_r x_r, the numbers s_r lds apart. z may be x. */
  void (*mul_row)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *z, int64_t ldz, int acc);
  void (*mul_col)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *s, int64_t lds, void *z,
                  int64_t ldz, int acc);
  /* out (cols) (+)= sum over rows of x .* y, rows in order; out_r = <x_r, y_r>, ldo apart, in fixed partial sums. */
  void (*coldot)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                 int acc);
  void (*rowdot)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                 int64_t ldo);
  /* y_r = e^{x_r - max x_r} over its sum: 0 <= y <= 1. A NaN or +infinity in a row, or nothing else than -infinity: a row of NaN.
   * y may be x. gx (+)= y .* (gy - <y, gy>); gx may be gy. */
  void (*softmax)(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy);
  void (*softmax_bwd)(int64_t rows, int64_t cols, const void *y, int64_t ldy, const void *gy, int64_t ldg, void *gx,
                      int64_t ldgx, int acc);
  /* out (cols) (+)= sum over rows of x, rows in order. */
  void (*colsum)(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *out, int acc);
  /* y = x + v for every row; v (cols). y may equal x. */
  void (*add_row)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *y, int64_t ldy);

  /* LayerNorm over the cols features of each row, biased variance, rs = 1/sqrt(var + eps) (laws.md 7):
   * y = gamma .* xh + beta, xh = (x - mean) rs. stat (rows, 2) receives mean, rs. A row may be as large as its numbers can be,
   * as long as their differences are finite: where squares overflow, eps has no weight. */
  void (*layernorm)(int64_t rows, int64_t cols, double eps, const void *x, int64_t ldx, const void *gamma,
                    const void *beta, void *y, int64_t ldy, void *stat);
  /* gx (+)= rs (q - mean q - xh mean(q xh)), q = gamma .* gy; ggamma (+)= sum gy .* xh; gbeta (+)= sum gy (each of the
   * three may be NULL). gx may equal gy unless acc_x. */
  void (*layernorm_bwd)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *gamma, const void *stat,
                        const void *gy, int64_t ldg, void *gx, int64_t ldgx, int acc_x, void *ggamma, void *gbeta,
                        int acc_p);

  /* Rows of logits, labels in [0, cols). loss[r] = sum_j a_j (ln sum exp - logit j), a_j = w_j ((1 - smoothing) [j is the
   * label] + smoothing / cols), w = weight (cols; NULL: all 1); hit[r] = 1 when the label is the first largest logit;
   * g (may be NULL) = scale * ((sum a) softmax - a). loss is double. A NaN or +infinity in a row: its loss and g are NaN,
   * no hit. A label outside the range: assert. */
  void (*softmax_ce)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const int32_t *label, double smoothing,
                     const double *weight, double scale, double *loss, int32_t *hit, void *g, int64_t ldg);
  /* loss[r] = mean over cols of f(x - t); g (may be NULL) = scale * f'(x - t)/cols. delta: of the huber alone. */
  void (*misfit)(ph_misfit f, double delta, int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *t,
                 int64_t ldt, double scale, double *loss, void *g, int64_t ldg);

  /* out[r] (double) = Euclidean norm of row r, scaled so that it neither overflows nor underflows early; NaN stays NaN. */
  void (*rownorm)(int64_t rows, int64_t cols, const void *x, int64_t ldx, double *out);

  /* ---- parameter phase: `count` matrices, `step` elements apart ---- */

  /* X = K^{-1} in place for K whose symmetric part is >= I (laws.md 12: every pivot >= 1, no pivoting needed). Two
   * matrices run interleaved to hide the division latency. Block size 16 whatever the vector. scratch: PH_INV_SCRATCH(d)
   * elements. refine != 0: one Newton step X += X (I - K X). resid[i] (may be NULL) = max |I - K X| before that step. A
   * non-finite K gives X and resid of that matrix alone as NaN. 2 d^3 flops, + 2 d^3 for resid, + 4 d^3 for refine (resid
   * included). A matrix gives the same bits in any company. */
  void (*inverse)(int64_t count, int64_t d, void *K, int64_t step, int refine, double *resid, void *scratch);

  /* X (d,m) = A^{-1} B for any square A (d,d), B (d,m): LU with partial pivoting (of equal pivots the topmost row), then back
   * substitution. B NULL: the identity, m = d. X may be A or B. A pivot of zero, and anything not finite in A, B or X, makes X of
   * that matrix NaN as a whole. scratch: PH_SOLVE_SCRATCH(d, m). (2/3) d^3 + 2 d^2 m flops. */
  void (*solve)(int64_t count, int64_t d, int64_t m, const void *A, int64_t stepa, const void *B, int64_t stepb,
                void *X, int64_t stepx, void *scratch);

  /* L (d,d) lower triangular, zeros above, with L L^T = (A + A^T)/2; its diagonal is positive. L may be A. A pivot that is not
   * positive, and anything not finite, makes L of that matrix NaN as a whole. scratch: PH_CHOLESKY_SCRATCH(d). (1/3) d^3 flops. */
  void (*cholesky)(int64_t count, int64_t d, const void *A, int64_t stepa, void *L, int64_t stepl, void *scratch);
  /* GA (d,d) (+)= the adjoint of that at G, from L: symmetric. GA may be G. scratch: PH_CHOLESKY_SCRATCH(d). 4 d^3 flops. */
  void (*cholesky_bwd)(int64_t count, int64_t d, const void *L, int64_t stepl, const void *G, int64_t stepg, void *GA,
                       int64_t stepga, int acc, void *scratch);

  /* X (d,d) += b I; the sum of the diagonal of X in double, from the top. */
  void (*add_diagonal)(int64_t d, double b, void *X);
  double (*trace)(int64_t d, const void *X);

  /* S = A - A^T */
  void (*skew)(int64_t count, int64_t d, const void *A, int64_t stepa, void *S, int64_t steps);

  /* ---- optimizers on n contiguous elements ---- */
  void (*adam)(int64_t n, void *p, const void *g, void *m, void *v, const ph_adam *o);
  /* v = momentum*v + g + weight_decay*p; p -= lr*v. */
  void (*sgd)(int64_t n, void *p, const void *g, void *v, double lr, double momentum, double weight_decay);

  /* Index of the first NaN or infinity of n elements, -1 if none. */
  int64_t (*first_nonfinite)(int64_t n, const void *x);
  /* Sum of squares of n elements in double, fixed order; of products, each rounded to double, from the first to the last. */
  double (*sumsq)(int64_t n, const void *x);
  double (*dot)(int64_t n, const void *x, const void *y);

  /* ---- float64 alone (NULL in the float32 table): random numbers in bulk, and eight problems abreast ---- */

  /* x (n): numbers first, first + 1, ... of ph_rng_normal times `scale`, with the bits of the numbers one by one. */
  void (*normal)(ph_rng rng, uint64_t first, double scale, int64_t n, double *x);
  /* x (2 pairs, 8): lane l of row i is number 2 (pair + l stride) + i of the stream times `scale`. */
  void (*normal8)(ph_rng rng, uint64_t pair, uint64_t stride, double scale, int64_t pairs, double *x);

  /* Arrays (.., 8): element (i, j) of the matrices of eight problems is eight numbers side by side; nothing passes from one problem to
   * another. d is a multiple of 4, at most PH_ABREAST_WIDTH. For one vector a problem two solves cost a third of two inverses. No
   * pivoting: every pivot is >= 1 (laws.md 12). K (d,d) is scratch.
   * x (d) <- C x, C = (I + S/2)^{-1} (I - S/2), S = U - U^T, U the strict upper triangle row by row, d(d-1)/2. 2/3 d^3 flops each. */
  void (*cayley8)(int64_t d, const double *U, double *K, double *x);
  /* x (d) <- (I + half R)^{-1} (I - half R) x, half (8), for R (d,d) symmetric and not negative. 2/3 d^3 flops each. */
  void (*damp8)(int64_t d, const double *R, const double *half, double *K, double *x);
  /* R (d,d) = L L^T; trace (8) = tr R, square (8) = ||R||_F^2. d^3 flops each. */
  void (*gram8)(int64_t d, const double *L, double *R, double *trace, double *square);
  /* y (d) = B (d,d) u (d) */
  void (*gemv8)(int64_t d, const double *B, const double *u, double *y);
  /* out (8) = Euclidean norms of x (d), scaled as in rownorm. */
  void (*norm8)(int64_t d, const double *x, double *out);
} ph_kern;

/* Problems abreast, and the largest d of their matrices. */
enum { PH_ABREAST = 8, PH_ABREAST_WIDTH = 64 };

/* Elements of scratch for `inverse` (refine included): two padded matrices, a residual and panels. */
#define PH_INV_SCRATCH(d) (4 * ((int64_t)(d) + 16) * ((int64_t)(d) + 16) + 32 * ((int64_t)(d) + 16) + 512)

/* Elements of scratch for `solve` and for `cholesky` and its adjoint. */
#define PH_ROUND_16(d) (((int64_t)(d) + 15) / 16 * 16)
#define PH_SOLVE_SCRATCH(d, m) (PH_ROUND_16(d) * (PH_ROUND_16(d) + PH_ROUND_16(m)))
#define PH_CHOLESKY_SCRATCH(d) (3 * PH_ROUND_16(d) * PH_ROUND_16(d))

/* The chosen table for PH_F32 or PH_F64. The first call chooses; later calls are free. Never NULL. */
const ph_kern *ph_kern_get(ph_dtype dtype);

/* A table by name ("portable", "avx2", "avx512", "neon"), NULL if this build or this CPU has none. */
const ph_kern *ph_kern_find(ph_dtype dtype, const char *name);

/* Peak rate of this core by the chosen table's gemm on L1-resident operands, GFLOP/s, the best of many short runs within about
 * `seconds` (bench and reports). Not for two threads at once. */
double ph_kern_peak(ph_dtype dtype, double seconds);

#endif
