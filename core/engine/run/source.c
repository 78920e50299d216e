/* source.c - samples that are the rows of a tensor. */
#include "engine/run/source.h"

#include <string.h>

static void fill_rows(const ph_source *s, ph_shape shape, const int32_t *idx, int64_t rows, void *tile) {
  const ph_tensor *t = s->from;
  int64_t bytes = shape.cols * (int64_t)ph_dtype_size(s->dtype);
  for (int64_t r = 0; r < rows; r++) {
    const char *sample = (const char *)t->data + idx[r] * shape.pos * bytes;
    for (int64_t q = 0; q < shape.pos; q++) {
      memcpy((char *)tile + (q * rows + r) * bytes, sample + q * bytes, (size_t)bytes);
    }
  }
}

ph_source ph_source_rows(const ph_tensor *t) {
  int64_t n = t->rank > 0 ? t->dim[0] : 0;
  int64_t features = n > 0 ? ph_tensor_count(t) / n : 0;
  return (ph_source){.n = n, .features = features, .dtype = t->dtype, .fill = fill_rows, .from = t};
}
