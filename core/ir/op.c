/* op.c - the table of operations, joined from its groups: leaves, parameter values (table_param.c), other values (table_value.c).
 * One row is all there is to an op; docs/language.md is generated from it. */
#include "ir/op.h"

#include <string.h>

#include "ir/op_internal.h"

static const ph_op LEAVES[] = {
    {.name = "state",
     .args = "",
     .role = PH_ROLE_STATE,
     .gain = PH_GAIN_STATE,
     .equation = "x_t",
     .doc = "The value a stream carries from step to step."},
    {.name = "input",
     .args = "",
     .role = PH_ROLE_INPUT,
     .gain = PH_GAIN_INPUT,
     .equation = "u_t",
     .doc = "The input of this step of a stream over time."},
};

static const ph_op_group leaves = {LEAVES, sizeof LEAVES / sizeof LEAVES[0]};
static const ph_op_group *const groups[] = {&leaves, &ph_op_params, &ph_op_values};

enum { GROUPS = sizeof groups / sizeof groups[0] };

double ph_flops_one(const ph_call *c) { return (double)c->out_shape.rows * (double)c->out_shape.cols; }
double ph_flops_product(const ph_call *c) { return 2.0 * (double)c->in_shape[0].cols * ph_flops_one(c); }

static ph_shape in_call(ph_shape s, int64_t samples) {
  s.rows = ph_shape_is_param(s) ? s.rows : s.pos * samples;
  return s;
}

ph_call ph_op_call(const ph_op *op, const ph_shape *in, ph_shape out, const double *attr, int64_t samples) {
  ph_call c = {.op = op, .count = 1};
  for (int i = 0; op->args[i]; i++) {
    c.in_shape[i] = in_call(in[i], samples);
  }
  c.out_shape = in_call(out, samples);
  memcpy(c.attr, attr, sizeof c.attr);
  return c;
}

ph_needs ph_op_needs(const ph_call *c) {
  const ph_op *op = c->op;
  return (ph_needs){.scratch = op->scratch ? op->scratch(c) : 0,
                    .aux = op->aux ? op->aux(c) : 0,
                    .flops = op->flops ? op->flops(c) : 0};
}

int ph_op_count(void) {
  int n = 0;
  for (int g = 0; g < GROUPS; g++) {
    n += groups[g]->n;
  }
  return n;
}

const ph_op *ph_op_at(int i) {
  for (int g = 0; i >= 0 && g < GROUPS; i -= groups[g++]->n) {
    if (i < groups[g]->n) {
      return &groups[g]->row[i];
    }
  }
  return NULL;
}

int ph_op_number(const ph_op *op) {
  int i = 0;
  while (i < ph_op_count() && ph_op_at(i) != op) {
    i++;
  }
  return i;
}

const ph_op *ph_op_find(const char *name) {
  int i = 0;
  while (i < ph_op_count() && strcmp(ph_op_at(i)->name, name) != 0) {
    i++;
  }
  return ph_op_at(i);
}

const ph_op *ph_op_of(ph_role role) {
  int i = 0;
  while (ph_op_at(i)->role != role) {
    i++;
  }
  return ph_op_at(i);
}

unsigned ph_op_linear(const ph_op *op) {
  switch (op->gain) {
  case PH_GAIN_SCALE:
  case PH_GAIN_STRETCH:
  case PH_GAIN_PART: return 1;
  case PH_GAIN_APPLY: return 2;
  case PH_GAIN_SUM:
  case PH_GAIN_DIFFERENCE:
  case PH_GAIN_JOIN: return 1 | 2;
  default: return 0;
  }
}

unsigned ph_op_parts(const ph_op *op, const unsigned *arg) {
  unsigned parts = 0;
  for (int i = 0; op->args[i]; i++) {
    parts |= ph_op_linear(op) & 1U << i ? arg[i] : 0;
  }
  switch (op->gain) {
  case PH_GAIN_STATE: return PH_PART_CHANNEL;
  case PH_GAIN_AFFINE: return arg[0] | PH_PART_PORT;
  default: return parts ? parts : PH_PART_PORT;
  }
}

const char *ph_gain_name(ph_gain gain) {
  static const char *const names[] = {
#define GAIN(NAME, name) #name,
      PH_GAINS(GAIN)
#undef GAIN
  };
  return names[gain];
}
