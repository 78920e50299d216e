/* plan.c - making a plan: parse, split into segments, choose groups, tile and windows, take memory. */
#include "engine/run/plan.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/run/plan_internal.h"

enum {
  BATCH = 128,     /* samples of a batch when nothing else is said */
  TILE = 128,      /* most samples of a tile */
  TILE_LEAST = 4,  /* least samples of a tile */
  TILE_ROWS = 512, /* most rows of a tile whose samples have several rows */
  GROUPS_MOST = 16,
  SPLIT_FROM = 32,      /* samples of a batch that is worth two groups */
  WINDOWS_FROM = 4,     /* iterations of a stream that is worth cutting into windows */
  CACHES = 2,           /* second-level caches that data may fill before asking for them ahead pays */
  CACHE_BYTES = 1 << 20 /* a second-level cache where the system does not tell */
};
static const int64_t TAPE_BYTES = (int64_t)256 << 20; /* of a worker, when nothing else is said */

/* Sample groups are fixed by the batch alone, never by the number of workers: two from 32 samples on, more when a group
 * would outgrow 128 samples, sixteen at most. */
static void choose_groups(ph_plan *p) {
  int64_t n = (p->batch + TILE - 1) / TILE;
  n = n < 2 && p->batch >= SPLIT_FROM ? 2 : n;
  p->groups = n > GROUPS_MOST ? GROUPS_MOST : n < 1 ? 1 : n;
  p->group = (p->batch + p->groups - 1) / p->groups;
  p->groups = (p->batch + p->group - 1) / p->group;
  p->tile = p->group < TILE ? p->group : TILE;
}

/* Sequences and images have many rows a sample: fewer samples a tile keep it in cache. */
static void choose_tile(ph_plan *p) {
  int64_t rows = 1;
  for (int s = 0; s < p->ir->nsegments; s++) {
    const ph_ir_segment *g = &p->ir->segment[s];
    int64_t here = g->input.pos > g->state.pos ? g->input.pos : g->state.pos;
    rows = here > rows ? here : rows;
  }
  while (p->tile > TILE_LEAST && p->tile * rows > TILE_ROWS) {
    p->tile = (p->tile + 1) / 2;
  }
}

static void choose_window(const ph_plan *p, ph_segment *t, int64_t budget) {
  int64_t repeat = t->prog.seg->repeat;
  int64_t bytes = t->prog.record * (int64_t)p->size;
  t->window = repeat;
  t->windows = 1;
  if (repeat * bytes <= budget || repeat < WINDOWS_FROM) {
    return;
  }
  int64_t n = budget / bytes;
  t->window = n < 1 ? 1 : n;
  t->windows = (repeat + t->window - 1) / t->window;
}

/* What a worker reads again and again is asked for ahead only where its second-level cache does not hold it. */
static bool outgrows_cache(const ph_plan *p, const ph_segment *t) {
  int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  int64_t elements = t->layers * (t->prog.pack + t->prog.grad) + t->window * t->prog.record;
  return elements * (int64_t)p->size > CACHES * (cache > 0 ? cache : CACHE_BYTES);
}

static ph_status make_segment(ph_plan *p, int s, const ph_plan_options *o, ph_err *err) {
  const ph_ir_segment *seg = &p->ir->segment[s];
  ph_segment *t = &p->segment[s];
  t->tied = seg->tied;
  t->layers = ph_ir_sets(seg);
  ph_lower_options lower = {.tile = p->tile,
                            .rows = p->batch * seg->state.pos * (t->tied ? seg->repeat : 1),
                            .first = s == 0,
                            .probe = o && o->probe && !seg->once}; /* a stage computes what it computes unprobed */
  ph_status st = ph_program_build(&t->prog, seg, &lower, err);
  st = st ? st : ph_pprog_build(&t->pprog, &t->prog, err);
  if (!st) {
    choose_window(p, t, o && o->tape_bytes > 0 ? o->tape_bytes : TAPE_BYTES);
    t->ahead = outgrows_cache(p, t);
    p->nsegments++;
  } else {
    ph_program_fini(&t->prog);
  }
  return st;
}

static ph_status make_segments(ph_plan *p, const ph_plan_options *o, ph_err *err) {
  p->segment = ph_mem_new((size_t)p->ir->nsegments, sizeof *p->segment);
  if (!p->segment) {
    return ph_code_no_memory(err);
  }
  for (int s = 0; s < p->ir->nsegments; s++) {
    ph_status st = make_segment(p, s, o, err);
    if (st) {
      return st;
    }
  }
  return PH_OK;
}

/* ---- parameters ---- */

static ph_param new_param(const ph_segment *t, const ph_ir_param *from) {
  ph_param q = {.declared = from,
                .first = t,
                .last = t,
                .layers = t->layers,
                .rows = from->rows,
                .cols = from->cols,
                .rates = {1.0, NAN, false}};
  snprintf(q.name, sizeof q.name, "%s.%s", t->prog.seg->name, from->name);
  return q;
}

/* The parameter of that name; an earlier segment of the same name may have declared it. */
static ph_param *param_of(ph_plan *p, const ph_segment *t, const ph_ir_param *from) {
  ph_param q = new_param(t, from);
  for (int i = 0; i < p->nparams; i++) {
    if (strcmp(p->param[i].name, q.name) == 0) {
      p->param[i].last = t;
      return &p->param[i];
    }
  }
  p->param[p->nparams] = q;
  return &p->param[p->nparams++];
}

/* Segments of one name are a chain: the layer phase takes them together. */
static void join_chain(ph_plan *p, ph_segment *t) {
  for (ph_segment *u = p->segment; u < t; u++) {
    if (strcmp(u->prog.seg->name, t->prog.seg->name) == 0 && !u->next) {
      u->next = t;
      t->follows = true;
    }
  }
}

static ph_status make_params(ph_plan *p, ph_err *err) {
  int total = 0;
  for (int s = 0; s < p->nsegments; s++) {
    total += p->ir->segment[s].nparams;
  }
  p->param = ph_mem_new((size_t)total, sizeof *p->param);
  bool failed = !p->param;
  for (int s = 0; s < p->nsegments && !failed; s++) {
    const ph_ir_segment *seg = &p->ir->segment[s];
    ph_segment *t = &p->segment[s];
    join_chain(p, t);
    t->param = ph_mem_new((size_t)seg->nparams, sizeof *t->param);
    failed = !t->param;
    for (int i = 0; i < seg->nparams && !failed; i++) {
      t->param[i] = param_of(p, t, &seg->param[i]);
      t->param[i]->moves |= t->pprog.leaf_cot[i] >= 0;
    }
  }
  return failed ? ph_err_set(err, PH_E_NOMEM, "out of memory while compiling a model") : PH_OK;
}

static ph_status check_loss(const ph_ir *ir, ph_err *err) {
  if (ir->output.cols < ir->loss->least_cols) {
    return ph_err_set(err, PH_E_SHAPE, "%s needs at least %lld outputs, the model gives %lld", ir->loss->name,
                      (long long)ir->loss->least_cols, (long long)ir->output.cols);
  }
  return PH_OK;
}

static ph_status build(ph_plan *p, const ph_plan_options *o, ph_err *err) {
  ph_status st = check_loss(p->ir, err);
  if (st) {
    return st;
  }
  p->k = ph_kern_get(p->ir->dtype);
  p->size = ph_dtype_size(p->ir->dtype);
  p->batch = o && o->batch > 0 ? o->batch : BATCH;
  p->workers = o && o->threads > 0 ? o->threads : 1;
  choose_groups(p);
  choose_tile(p);
  st = make_segments(p, o, err);
  st = st ? st : make_params(p, err);
  st = st ? st : ph_plan_allocate(p, err);
  return st ? st : ph_pool_new(&p->pool, p->workers, err);
}

ph_status ph_plan_new(ph_plan **out, const char *text, size_t n, const ph_plan_options *o, ph_err *err) {
  ph_ir *ir = NULL;
  ph_status st = ph_ir_parse(&ir, text, n, err);
  return st ? st : ph_plan_of(out, ir, o, err);
}

ph_status ph_plan_of(ph_plan **out, ph_ir *ir, const ph_plan_options *o, ph_err *err) {
  ph_plan *p = ph_mem_new(1, sizeof *p);
  if (!p) {
    ph_ir_free(ir);
    return ph_code_no_memory(err);
  }
  p->ir = ir;
  ph_status st = build(p, o, err);
  if (st) {
    ph_plan_free(p);
    return st;
  }
  ph_plan_init(p, 0);
  *out = p;
  return PH_OK;
}

void ph_plan_free(ph_plan *p) {
  if (p) {
    ph_pool_free(p->pool);
    ph_plan_release(p);
    ph_ir_free(p->ir);
    ph_mem_free(p);
  }
}
