/* kern_trial.h - one call of a kernel, made with every table of this build and with its twin, on guarded tiles.
 *
 * A trial owns up to eight tiles. A tile has its own leading dimension and starts off any alignment; every element around
 * and between its rows is a NaN of a known pattern. So a write outside is seen, and a read outside usually shows as NaN.
 */
#ifndef KERN_TRIAL_H
#define KERN_TRIAL_H

#include "ph_test.h"
#include "ref.h"

enum { TRIAL_TILES = 8, TRIAL_GUARD = 19 };

typedef struct tile {
  int64_t rows, cols, ld;
  size_t bytes;
  char *block; /* guards and all */
  void *at;    /* element (0, 0) */
} tile;

typedef struct trial {
  ph_dtype type;
  int64_t m, n, k;
  int flag, flag2;
  ph_act f;
  double a, b;
  int32_t *label, *hit;
  double *loss;
  tile v[TRIAL_TILES];
} trial;

typedef void trial_fn(const ph_kern *k, trial *q);

static const int64_t trial_sizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 33, 64, 65};
static uint64_t trial_seed = 1;

/* Uniform in [-1, 1). */
static inline double trial_random(void) {
  trial_seed = trial_seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(trial_seed >> 11) * 0x1p-52 - 1;
}

static inline double elem(ph_dtype type, const void *p, int64_t i) {
  return type == PH_F64 ? ((const double *)p)[i] : ((const float *)p)[i];
}

static inline void set_elem(ph_dtype type, void *p, int64_t i, double v) {
  if (type == PH_F64) {
    ((double *)p)[i] = v;
  } else {
    ((float *)p)[i] = (float)v;
  }
}

static inline double trial_eps(ph_dtype type) { return type == PH_F64 ? 0x1p-52 : 0x1p-23; }

static inline void tile_guard(ph_dtype type, tile *t) {
  for (size_t i = 0; i < t->bytes; i += type == PH_F64 ? 8 : 4) {
    const uint64_t nan64 = 0x7ff8a5a5a5a5a5a5;
    const uint32_t nan32 = 0x7fc5a5a5;
    if (type == PH_F64) {
      memcpy(t->block + i, &nan64, 8);
    } else {
      memcpy(t->block + i, &nan32, 4);
    }
  }
}

/* Tile i of the trial: rows x cols, `gap` more elements between rows, random values in [-1, 1). */
static inline tile *tile_new(trial *q, int i, int64_t rows, int64_t cols, int64_t gap) {
  const size_t size = q->type == PH_F64 ? 8 : 4;
  tile *t = &q->v[i];
  t->rows = rows;
  t->cols = cols;
  t->ld = cols + gap;
  t->bytes = (size_t)(rows * t->ld + 2 * TRIAL_GUARD) * size;
  t->block = ph_mem_new(t->bytes, 1);
  assert_non_null(t->block);
  t->at = t->block + TRIAL_GUARD * size;
  tile_guard(q->type, t);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      set_elem(q->type, t->at, r * t->ld + j, trial_random());
    }
  }
  return t;
}

static inline double tile_get(const trial *q, int i, int64_t r, int64_t j) {
  return elem(q->type, q->v[i].at, r * q->v[i].ld + j);
}
static inline void tile_set(trial *q, int i, int64_t r, int64_t j, double v) {
  set_elem(q->type, q->v[i].at, r * q->v[i].ld + j, v);
}

static inline trial trial_copy(const trial *q) {
  trial c = *q;
  for (int i = 0; i < TRIAL_TILES; i++) {
    if (!q->v[i].block) {
      continue;
    }
    c.v[i].block = ph_mem_new(q->v[i].bytes, 1);
    assert_non_null(c.v[i].block);
    memcpy(c.v[i].block, q->v[i].block, q->v[i].bytes);
    c.v[i].at = c.v[i].block + ((char *)q->v[i].at - q->v[i].block);
  }
  return c;
}

static inline void trial_free(trial *q) {
  for (int i = 0; i < TRIAL_TILES; i++) {
    ph_mem_free(q->v[i].block);
  }
}

static inline int is_inside(const tile *t, size_t size, size_t byte) {
  const int64_t i = (int64_t)(byte / size) - TRIAL_GUARD;
  return i >= 0 && t->ld > 0 && i / t->ld < t->rows && i % t->ld < t->cols;
}

/* Everything but the elements of output tiles must be as it was. */
static inline void check_guards(const trial *before, const trial *after, unsigned outs, const char *name) {
  const size_t size = before->type == PH_F64 ? 8 : 4;
  for (int i = 0; i < TRIAL_TILES; i++) {
    for (size_t b = 0; before->v[i].block && b < before->v[i].bytes; b += size) {
      if (memcmp(before->v[i].block + b, after->v[i].block + b, size) != 0 &&
          !((outs >> i & 1) && is_inside(&before->v[i], size, b))) {
        fail_msg("%s: m=%d n=%d k=%d: tile %d changed at element %d outside its rows", name, (int)before->m,
                 (int)before->n, (int)before->k, i, (int)(b / size) - TRIAL_GUARD);
      }
    }
  }
}

static inline void check_values(const trial *want, const trial *got, unsigned outs, double atol, double rtol,
                                const char *name) {
  for (int i = 0; i < TRIAL_TILES; i++) {
    for (int64_t r = 0; (outs >> i & 1) && r < want->v[i].rows; r++) {
      for (int64_t j = 0; j < want->v[i].cols; j++) {
        const double w = tile_get(want, i, r, j);
        const double g = tile_get(got, i, r, j);
        if (w == g || (isnan(w) && isnan(g)) || (fabs(w - g) <= atol + rtol * fabs(w) && isfinite(g))) {
          continue;
        }
        fail_msg("%s %s: m=%d n=%d k=%d flags %d %d: tile %d (%d, %d): want %.17g, got %.17g, error %.3g", name,
                 want->type == PH_F64 ? "f64" : "f32", (int)want->m, (int)want->n, (int)want->k, want->flag,
                 want->flag2, i, (int)r, (int)j, w, g, fabs(w - g));
      }
    }
  }
}

static inline int same_number(ph_dtype type, const char *a, const char *b) {
  const size_t size = type == PH_F64 ? 8 : 4;
  return memcmp(a, b, size) == 0 || (isnan(elem(type, a, 0)) && isnan(elem(type, b, 0)));
}

static inline void check_bits(const trial *a, const trial *b, const char *name) {
  const size_t size = a->type == PH_F64 ? 8 : 4;
  for (int i = 0; i < TRIAL_TILES; i++) {
    for (size_t k = 0; a->v[i].block && k < a->v[i].bytes; k += size) {
      if (!same_number(a->type, a->v[i].block + k, b->v[i].block + k)) {
        fail_msg("%s: m=%d n=%d k=%d: avx2 and avx512 differ in tile %d", name, (int)a->m, (int)a->n, (int)a->k, i);
      }
    }
  }
}

/* Every table against the twin, guards, and avx2 against avx512 bit by bit. outs: bit i set = tile i is written.
 * Frees the trial's tiles. */
static inline void trial_run(const char *what, trial_fn *fn, trial *q, unsigned outs, double atol, double rtol) {
  static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
  trial want = trial_copy(q);
  trial got[PH_COUNT(names)];
  fn(ph_ref_get(q->type), &want);
  for (int i = 0; i < PH_COUNT(names); i++) {
    const ph_kern *k = ph_kern_find(q->type, names[i]);
    char name[64];
    got[i] = trial_copy(q);
    if (!k) {
      continue;
    }
    snprintf(name, sizeof name, "%s %s", what, names[i]);
    fn(k, &got[i]);
    check_guards(q, &got[i], outs, name);
    check_values(&want, &got[i], outs, atol, rtol, name);
  }
  if (ph_kern_find(q->type, "avx2") && ph_kern_find(q->type, "avx512")) {
    check_bits(&got[1], &got[2], what);
  }
  for (int i = 0; i < PH_COUNT(names); i++) {
    trial_free(&got[i]);
  }
  trial_free(&want);
  trial_free(q);
}

#define EACH_SIZE(v) \
  for (int v##_i = 0, v = 0; v##_i < PH_COUNT(trial_sizes) && (v = (int)trial_sizes[v##_i], 1); v##_i++)
#define EACH_TYPE(t) for (ph_dtype t = PH_F32; t <= PH_F64; t++)

#endif
