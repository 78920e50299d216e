/* inspect.c - what a plan is, costs and does: its model, flops and bytes, times, the program as text. */
#include "base/text.h"
#include "engine/run/plan_internal.h"

const ph_ir *ph_plan_model(const ph_plan *p) { return p->ir; }

/* ---- cost ---- */

static void program_flops(const ph_program *s, double *forward, double *both) {
  double f = 0;
  double b = 0;
  for (int i = 0; i < s->graph.n; i++) {
    const ph_gnode *n = &s->graph.node[i];
    if (!n->live || ph_graph_is_param(&s->graph, i) || !n->op) {
      continue;
    }
    ph_call c = ph_graph_call(&s->graph, i, 1);
    double one = ph_op_needs(&c).flops;
    f += one;
    b += one * n->op->flops_bwd;
  }
  *forward += f * (double)s->seg->repeat;
  *both += (f + b) * (double)s->seg->repeat;
}

void ph_plan_cost(const ph_plan *p, ph_cost *out) {
  *out = (ph_cost){.groups = p->groups, .tile = p->tile};
  int64_t size = (int64_t)p->size;
  for (int s = 0; s < p->nsegments; s++) {
    const ph_segment *t = &p->segment[s];
    program_flops(&t->prog, &out->flops_forward, &out->flops_stream);
    out->flops_param += t->pprog.flops * (double)t->layers;
    out->bytes_packed += t->prog.pack * t->layers * size;
    out->bytes_grad += t->prog.grad * t->layers * p->groups * size;
    out->bytes_tape += t->window * t->prog.record * size;
    if (t->windows > 1 && t->window > out->window) {
      out->window = t->window;
    }
  }
  out->bytes_param = ph_plan_param_total(p) * size;
}

void ph_plan_times(ph_plan *p, double *stream, double *layers, bool reset) {
  *stream = p->seconds_stream;
  *layers = p->seconds_layers;
  if (reset) {
    p->seconds_stream = p->seconds_layers = 0;
  }
}

/* ---- as text ---- */

static void head_text(ph_text *s, const ph_ir_segment *seg) {
  ph_text_put(s, "\nsegment %s, %s %lld iteration%s, %s parameters%s%s\n", seg->name,
              seg->once ? "a stage:" : "a stream of", (long long)seg->repeat, seg->repeat == 1 ? "" : "s",
              seg->tied ? "one set of" : "own", seg->driven ? ", driven" : "", seg->from_zero ? ", from zero" : "");
}

static void segment_text(ph_text *s, const ph_plan *p, int n) {
  const ph_segment *t = &p->segment[n];
  const ph_program *q = &t->prog;
  head_text(s, q->seg);
  ph_text_put(s, "  state (%lld x %lld), kept for backward: %lld elements a sample and iteration",
              (long long)q->seg->state.pos, (long long)q->seg->state.cols, (long long)(q->record / q->tile));
  ph_text_put(s, t->windows > 1 ? ", in chunks of %lld iterations run twice\n" : "\n", (long long)t->window);
  ph_text_put(s, "  parameter phase, once a step, %d layer%s a task\n", t->block_layers,
              t->block_layers == 1 ? "" : "s");
  ph_pprog_describe(&t->pprog, s);
  ph_text_put(s, "  stream phase, for each tile and iteration\n");
  ph_program_describe(q, s);
}

ph_status ph_plan_describe(const ph_plan *p, char **text, ph_err *err) {
  ph_text s = {0};
  ph_cost c;
  ph_plan_cost(p, &c);
  ph_text_put(&s, "plan: %s, kernels %s, batch %lld = %lld group%s of %lld samples, tiles of %lld, %d worker%s\n",
              ph_dtype_name(p->ir->dtype), p->k->name, (long long)p->batch, (long long)p->groups,
              p->groups == 1 ? "" : "s", (long long)p->group, (long long)p->tile, p->workers,
              p->workers == 1 ? "" : "s");
  ph_text_put(&s, "parameters %lld; bytes: parameters %lld, packed %lld, gradients %lld, tape %lld a worker\n",
              (long long)ph_plan_param_total(p), (long long)c.bytes_param, (long long)c.bytes_packed,
              (long long)c.bytes_grad, (long long)c.bytes_tape);
  ph_text_put(&s, "flops: parameter phase %.4g a step, stream phase %.4g a sample (forward %.4g)\n", c.flops_param,
              c.flops_stream, c.flops_forward);
  for (int n = 0; n < p->nsegments; n++) {
    segment_text(&s, p, n);
  }
  return ph_text_take(&s, text, NULL, err);
}
