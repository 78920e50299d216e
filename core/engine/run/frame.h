/* frame.h - one iteration of one segment on one tile: where its values lie, and running its instructions there. Private to
 * core/engine/run.
 *
 * The address of a slot is its space's base in this iteration plus the slot's offset.
 */
#ifndef PH_ENGINE_FRAME_H
#define PH_ENGINE_FRAME_H

#include "engine/run/plan_internal.h"

typedef struct ph_frame {
  const ph_tile *t;
  const ph_plan *p; /* the tile's */
  const ph_segment *segment;
  int64_t it; /* iteration */
  char *base[PH_SP_COUNT];
  const char *pack; /* of this iteration's layer */
  char *grad;       /* of this iteration's layer in the gradient of the tile's group; backward only */
  bool acc;         /* weight cotangents add to what is there */
} ph_frame;

static inline char *ph_frame_at(const ph_frame *f, int slot) {
  const ph_slot *s = &f->segment->prog.slot[slot];
  return ph_plan_at(f->p, f->base[s->space], s->off);
}

static inline int64_t ph_frame_stride(const ph_frame *f, int slot) { return f->segment->prog.slot[slot].ld; }

static inline int64_t ph_frame_rows(const ph_frame *f, ph_shape s) { return s.pos * f->t->rows; }

/* Memory that will be read soon is asked for, a share before each instruction (ahead.c). A hint; no effect on results. */
typedef struct ph_ahead {
  const ph_frame *f;
  bool back;
  int region; /* the next one */
  const char *at;
  int64_t lines; /* left of the region being asked for */
  int64_t share; /* lines to ask for before each instruction */
} ph_ahead;

enum { PH_AHEAD_LINE = 64 };

/* For a frame that runs `instructions`; more: the same layerwise loop goes on after it (forward to it + 1, back to it - 1). */
ph_ahead ph_ahead_start(const ph_frame *f, bool back, bool more, int instructions);
void ph_ahead_next(ph_ahead *a);
static inline void ph_ahead_ask(ph_ahead *a) {
  for (int64_t left = a->share; left > 0 && a->lines > 0;) {
    int64_t here = left < a->lines ? left : a->lines;
    const char *at = a->at;
    for (int64_t i = 0; i < here; i++, at += PH_AHEAD_LINE) {
      __builtin_prefetch(at, 0, 2);
    }
    a->at = at;
    a->lines -= here;
    left -= here;
    if (a->lines == 0) {
      ph_ahead_next(a);
    }
  }
}

void ph_frame_run(const ph_frame *f, const ph_list *list, ph_ahead *a);
/* numbers.c: the iteration's terms go to the group's loss, what is observed to the probe. s: number of the segment. */
void ph_numbers_forward(const ph_frame *f, int s);
/* Sets a slot to zero. */
void ph_frame_clear(const ph_frame *f, int slot);

#endif
