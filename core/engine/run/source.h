/* source.h - where samples come from: something that fills a tile. */
#ifndef PH_ENGINE_SOURCE_H
#define PH_ENGINE_SOURCE_H

#include "base/tensor.h"
#include "ir/op.h"

typedef struct ph_source {
  int64_t n;        /* samples */
  int64_t features; /* numbers of a sample, over all positions */
  ph_dtype dtype;   /* of what fill writes */
  /* tile [OUT] (shape.pos, rows, shape.cols) dtype: sample idx[r] at r of every position; pos * cols = features. Several workers call
   * it at once. It allocates nothing, and equal numbers of a sample are equal bits whoever asks, in whatever company. */
  void (*fill)(const struct ph_source *s, ph_shape shape, const int32_t *idx, int64_t rows, void *tile);
  const void *from; /* what fill reads, borrowed */
} ph_source;

/* The rows of a tensor (n, features), borrowed. */
ph_source ph_source_rows(const ph_tensor *t);

#endif
