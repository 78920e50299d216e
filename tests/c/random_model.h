/* random_model.h - random streams built from the op table, and their slow evaluation node by node.
 *
 * Blocks mix parameter matrices and states in any way the shape rules allow, so that compiled execution meets products that
 * share an input, sums, values used twice, and results that are plain views.
 */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "base/rng.h"
#include "ir/ir.h"
#include "ph_test.h"

enum { RM_WIDTH = 6, RM_TEXT = 8192 };

typedef struct rm {
  ph_rng rng;
  uint64_t at;
  char text[RM_TEXT];
  size_t n;
  int nodes, matrices[64], nmatrices, states[64], nstates;
} rm;

static inline uint32_t rm_pick(rm *m, uint32_t n) { return (uint32_t)(ph_rng_u64(m->rng, m->at++) % n); }

static inline void rm_put(rm *m, const char *fmt, ...) PH_PRINTF(2, 3);
static inline void rm_put(rm *m, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  m->n += (size_t)vsnprintf(m->text + m->n, RM_TEXT - m->n, fmt, ap);
  va_end(ap);
  assert_true(m->n < RM_TEXT);
}

static inline void rm_matrix_ref(rm *m, char *buf) {
  uint32_t i = rm_pick(m, (uint32_t)(3 + m->nmatrices));
  snprintf(buf, 16, i < 3 ? "p%d" : "n%d", i < 3 ? (int)i : m->matrices[i - 3]);
}

static inline int rm_state(rm *m) { /* recent values more often */
  uint32_t back = rm_pick(m, (uint32_t)(m->nstates < 4 ? m->nstates : 4));
  return m->states[m->nstates - 1 - (int)back];
}

static inline void rm_matrix_node(rm *m) {
  static const char *const one[] = {"skew", "gram", "transpose", "guard step=0.5 budget=1", "scale by=-0.7", "tanh"};
  char a[16];
  char b[16];
  rm_matrix_ref(m, a);
  rm_matrix_ref(m, b);
  uint32_t k = rm_pick(m, 9);
  if (k < 6) {
    rm_put(m, "node %d %s %s\n", m->nodes, one[k], a);
  } else if (k == 6) { /* a transport: skew, then cayley */
    rm_put(m, "node %d skew %s\nnode %d cayley n%d\n", m->nodes, a, m->nodes + 1, m->nodes);
    m->nodes++;
  } else if (k == 7) { /* a dissipation */
    rm_put(m, "node %d gram %s\nnode %d damping step=0.3 n%d\n", m->nodes, a, m->nodes + 1, m->nodes);
    m->nodes++;
  } else {
    rm_put(m, "node %d %s %s %s\n", m->nodes, rm_pick(m, 2) ? "matmul" : "add", a, b);
  }
  m->matrices[m->nmatrices++] = m->nodes++;
}

static inline void rm_state_node(rm *m) {
  static const char *const act[] = {"tanh", "gelu", "sigmoid", "softplus", "silu", "scale by=0.5"};
  char a[16];
  rm_matrix_ref(m, a);
  int x = rm_state(m);
  int y = rm_state(m);
  switch (rm_pick(m, 7)) {
  case 0:
  case 1: rm_put(m, "node %d apply %s n%d\n", m->nodes, a, x); break;
  case 2: rm_put(m, "node %d bias n%d p3\n", m->nodes, x); break;
  case 3: rm_put(m, "node %d %s n%d\n", m->nodes, act[rm_pick(m, 6)], x); break;
  case 4: rm_put(m, "node %d layernorm eps=0.01 n%d p4 p3\n", m->nodes, x); break;
  case 5: rm_put(m, "node %d %s n%d n%d\n", m->nodes, rm_pick(m, 3) ? "add" : "mul", x, y); break;
  default: rm_put(m, "node %d sub n%d n%d\n", m->nodes, x, y); break;
  }
  m->states[m->nstates++] = m->nodes++;
}

static inline void rm_block(rm *m, bool input) {
  m->nodes = m->nmatrices = m->nstates = 0;
  rm_put(m,
         "param A %d %d normal 0.3\nparam B %d %d normal 0.3\nparam C %d %d uniform 0.4\nparam b 1 %d normal "
         "0.5\nparam g 1 %d constant 0.8\n",
         RM_WIDTH, RM_WIDTH, RM_WIDTH, RM_WIDTH, RM_WIDTH, RM_WIDTH, RM_WIDTH, RM_WIDTH);
  rm_put(m, "node 0 state\n");
  m->states[m->nstates++] = m->nodes++;
  if (input) {
    rm_put(m, "node 1 input\n");
    m->states[m->nstates++] = m->nodes++;
  }
  int steps = 3 + (int)rm_pick(m, 10);
  for (int i = 0; i < steps; i++) {
    if (rm_pick(m, 3) == 0) {
      rm_matrix_node(m);
    } else {
      rm_state_node(m);
    }
  }
}

/* The properties of a stream. */
typedef struct rm_stream {
  bool tied, driven, from_zero, read;
} rm_stream;

/* Every combination has a number, 0 to 15. */
enum { RM_STREAMS = 16 };
static inline rm_stream rm_stream_at(int i) {
  return (rm_stream){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
}

static inline void rm_head(rm *m, const rm_stream *k, int repeat, int lines) {
  int places = k->driven ? repeat + !k->from_zero : 1;
  rm_put(m, "phrun-ir 2\ndtype f64\ninput %d", k->driven ? places : lines);
  if (k->driven && lines > 1) {
    rm_put(m, " %d", lines);
  }
  rm_put(m, " %d\n", RM_WIDTH);
}

static inline void rm_stage(rm *m, int number) {
  rm_put(m, "segment s%d\n", number);
  rm_block(m, false);
  rm_put(m, "result n%d\nend\n", rm_state(m));
}

static inline void rm_stream_segment(rm *m, const rm_stream *k, int repeat, int lines, int number) {
  rm_put(m, "segment s%d repeat %d%s%s", number, repeat, k->tied ? " tied" : "", k->driven ? " driven" : "");
  if (k->from_zero) {
    rm_put(m, " from zero %d %d", lines, RM_WIDTH);
  }
  rm_put(m, "\n");
  rm_block(m, k->driven);
  rm_put(m, "result n%d\n", rm_state(m));
  if (k->read) {
    rm_put(m, "read n%d\n", rm_state(m));
  }
  rm_put(m, "end\n");
}

/* The text as it is printed: of version 1 where that can say it. */
static inline void rm_canonical(rm *m) {
  ph_ir *ir = NULL;
  ph_err err;
  char *text = NULL;
  if (ph_ir_read(&ir, m->text, m->n, &err)) {
    fail_msg("%s\n%s", err.text, m->text);
  }
  ph_ok(ph_ir_print(ir, &text, &m->n, &err));
  assert_true(m->n < RM_TEXT);
  memcpy(m->text, text, m->n + 1);
  ph_mem_free(text);
  ph_ir_free(ir);
}

/* A stage (left out of every third model, so that streams also meet the data), a stream of one or two positions a place, and a
 * stage that reads it out. */
static inline void rm_model(rm *m, uint64_t seed, const rm_stream *k) {
  *m = (rm){.rng = ph_rng_of(seed, "model")};
  int repeat = 3 + (int)rm_pick(m, 3);
  int lines = 1 + (rm_pick(m, 3) == 0);
  int number = 1;
  rm_head(m, k, repeat, lines);
  if (seed % 3) {
    rm_stage(m, number++);
  }
  rm_stream_segment(m, k, repeat, lines, number);
  rm_stage(m, number + 1);
  rm_put(m, "loss mse\n");
  rm_canonical(m);
}

#endif
