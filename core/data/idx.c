/* idx.c - IDX files, plain or gzip, read whole and checked byte for byte against their header. See idx.h. */
#include "data/idx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "store/file.h"

enum { MAGIC = 4, HEADER_MAX = MAGIC + 4 * PH_RANK_MAX, UBYTE = 0x08, INFLATE_MAX = 1032, GZIP_WINDOW = 15 + 16 };
static const int64_t DEFAULT_LIMIT = INT64_C(1) << 31;

/* The contents of a file as a stream of bytes. */
typedef struct source {
  const char *path;
  const unsigned char *bytes; /* the file itself */
  size_t n, at;               /* `at`: contents taken so far */
  bool gzip;
  z_stream z;
  ph_err *err;
} source;

/* "path: byte 16: expected this, found that"; in gzip files the byte is one of the inflated contents. */
static ph_status PH_PRINTF(4, 5) refuse(const source *s, ph_status code, uint64_t byte, const char *fmt, ...) {
  char text[PH_ERR_TEXT];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return ph_err_set(s->err, code, "%s: byte %llu%s: %s", s->path, (unsigned long long)byte,
                    s->gzip ? " (inflated)" : "", text);
}

/* As refuse, for a place in the gzip file itself. */
static ph_status refuse_gzip(const source *s, size_t byte, const char *want, const char *found) {
  return ph_err_set(s->err, PH_E_FORMAT, "%s: byte %zu: expected %s, found %s", s->path, byte, want, found);
}

static bool has_gzip_magic(const unsigned char *p, size_t n) { return n >= 2 && p[0] == 0x1f && p[1] == 0x8b; }

static ph_status source_init(source *s) {
  size_t len = strlen(s->path);
  s->gzip = has_gzip_magic(s->bytes, s->n);
  if (!s->gzip && len > 3 && strcmp(s->path + len - 3, ".gz") == 0) {
    char found[32] = "an empty file";
    if (s->n == 1) {
      snprintf(found, sizeof found, "%02X and the end of the file", s->bytes[0]);
    }
    if (s->n > 1) {
      snprintf(found, sizeof found, "%02X %02X", s->bytes[0], s->bytes[1]);
    }
    return refuse_gzip(s, 0, "a gzip stream (1F 8B)", found);
  }
  if (!s->gzip) {
    return PH_OK;
  }
  s->z.next_in = (unsigned char *)s->bytes; /* zlib does not write there */
  s->z.avail_in = (uInt)s->n;
  if (inflateInit2(&s->z, GZIP_WINDOW) == Z_OK) {
    return PH_OK;
  }
  s->gzip = false;
  return ph_err_set(s->err, PH_E_NOMEM, "%s: out of memory", s->path);
}

static void source_fini(source *s) {
  if (s->gzip) {
    inflateEnd(&s->z);
  }
}

/* What inflate complains about: the CRC and the length stand in the 8 bytes behind the stream, all else is in it. */
static ph_status refuse_stream(const source *s) {
  size_t at = (size_t)(s->z.next_in - s->bytes);
  char want[64];
  char found[64];
  if (s->z.msg && strcmp(s->z.msg, "incorrect data check") == 0 && at >= 4) {
    const unsigned char *p = s->bytes + at - 4;
    snprintf(want, sizeof want, "CRC-32 %08lX of the inflated contents", s->z.adler & 0xffffffffUL);
    snprintf(found, sizeof found, "%02X%02X%02X%02X", p[3], p[2], p[1], p[0]);
    return refuse_gzip(s, at - 4, want, found);
  }
  snprintf(found, sizeof found, "%s", s->z.msg ? s->z.msg : "damage");
  return refuse_gzip(s, at, "a sound gzip stream", found);
}

/* Takes up to n bytes of the inflated contents; *got < n only at the sound end of the last stream. */
static ph_status pull_gzip(source *s, unsigned char *to, size_t n, size_t *got) {
  s->z.next_out = to;
  s->z.avail_out = (uInt)n;
  while (s->z.avail_out > 0) {
    int rc = inflate(&s->z, Z_NO_FLUSH);
    if (rc == Z_STREAM_END && has_gzip_magic(s->z.next_in, s->z.avail_in)) {
      (void)inflateReset(&s->z); /* gzip files may be concatenated */
    } else if (rc == Z_STREAM_END) {
      break;
    } else if (rc == Z_BUF_ERROR) {
      return refuse_gzip(s, s->n, "the rest of the gzip stream", "the end of the file");
    } else if (rc == Z_MEM_ERROR) {
      return ph_err_set(s->err, PH_E_NOMEM, "%s: out of memory", s->path);
    } else if (rc != Z_OK) {
      return refuse_stream(s);
    }
  }
  *got = n - s->z.avail_out;
  return PH_OK;
}

static ph_status pull(source *s, unsigned char *to, size_t n, size_t *got) {
  ph_status status = PH_OK;
  if (s->gzip) {
    status = pull_gzip(s, to, n, got);
  } else {
    *got = s->n - s->at < n ? s->n - s->at : n;
    memcpy(to, s->bytes + s->at, *got);
  }
  if (status == PH_OK) {
    s->at += *got;
  }
  return status;
}

typedef struct header {
  int rank;
  int64_t dim[PH_RANK_MAX];
  int64_t count; /* elements */
} header;

static ph_status read_magic(source *s, header *h) {
  static const char *const type_name[] = {[0x08] = "unsigned bytes", [0x09] = "signed bytes", [0x0b] = "int16",
                                          [0x0c] = "int32",          [0x0d] = "float32",      [0x0e] = "float64"};
  unsigned char m[MAGIC];
  size_t got;
  ph_status status = pull(s, m, MAGIC, &got);
  if (status != PH_OK) {
    return status;
  }
  if (got < MAGIC) {
    return refuse(s, PH_E_FORMAT, got, "expected 4 bytes 00 00 type rank, found the end after %zu", got);
  }
  if (m[0] != 0 || m[1] != 0) {
    bool little = m[2] == 0 && m[3] == 0;
    return refuse(s, PH_E_FORMAT, 0, "expected 00 00, found %02X %02X%s", m[0], m[1],
                  little ? " (little-endian header?)" : "");
  }
  if (m[2] != UBYTE) {
    const char *name = m[2] < sizeof type_name / sizeof *type_name ? type_name[m[2]] : NULL;
    return refuse(s, PH_E_FORMAT, 2, "expected element type 08 (unsigned bytes), found %02X (%s)", m[2],
                  name ? name : "no IDX type");
  }
  if (m[3] < 1 || m[3] > PH_RANK_MAX) {
    return refuse(s, PH_E_FORMAT, 3, "expected 1 to %d dimensions, found %d", PH_RANK_MAX, m[3]);
  }
  h->rank = m[3];
  return PH_OK;
}

/* "3 x 28 x 28" */
static const char *shape_text(const header *h, char buf[64]) {
  int n = 0;
  for (int i = 0; i < h->rank; i++) {
    n += snprintf(buf + n, 64 - (size_t)n, "%s%lld", i ? " x " : "", (long long)h->dim[i]);
  }
  return buf;
}

static ph_status read_dims(source *s, header *h, int64_t limit) {
  unsigned char b[4 * PH_RANK_MAX];
  char shape[64];
  size_t got;
  size_t need = 4 * (size_t)h->rank;
  bool fits = true;
  ph_status status = pull(s, b, need, &got);
  if (status != PH_OK) {
    return status;
  }
  if (got < need) {
    return refuse(s, PH_E_FORMAT, MAGIC + got, "expected %zu bytes of header for %d dimensions, found the end",
                  MAGIC + need, h->rank);
  }
  h->count = 1;
  for (int i = 0; i < h->rank; i++) {
    const unsigned char *p = b + 4 * i;
    h->dim[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    fits = fits && !__builtin_mul_overflow(h->count, h->dim[i], &h->count);
  }
  if (!fits || h->count > limit) {
    return refuse(s, PH_E_LIMIT, MAGIC, "expected at most %lld elements, found dimensions %s", (long long)limit,
                  shape_text(h, shape));
  }
  return PH_OK;
}

static ph_status refuse_short(const source *s, const header *h, const char *found, uint64_t bytes) {
  char shape[64];
  uint64_t head = MAGIC + 4 * (uint64_t)h->rank;
  uint64_t want = head + (uint64_t)h->count;
  return refuse(s, PH_E_FORMAT, bytes, "expected %llu bytes (%s elements behind a header of %llu), found %s%llu",
                (unsigned long long)want, shape_text(h, shape), (unsigned long long)head, found,
                (unsigned long long)bytes);
}

/* Refuses a header that asks for more than the file can hold before memory is taken for it. */
static ph_status check_size(const source *s, const header *h) {
  uint64_t head = MAGIC + 4 * (uint64_t)h->rank;
  uint64_t most = s->gzip ? (uint64_t)s->n * INFLATE_MAX : s->n;
  if (head + (uint64_t)h->count <= most) {
    return PH_OK;
  }
  return refuse_short(s, h, s->gzip ? "a gzip stream that can hold at most " : "", most);
}

static ph_status read_elements(source *s, const header *h, unsigned char *to) {
  unsigned char more;
  size_t got;
  ph_status status = pull(s, to, (size_t)h->count, &got);
  if (status == PH_OK && got < (size_t)h->count) {
    return refuse_short(s, h, "", s->at);
  }
  uint64_t end = s->at;
  if (status == PH_OK) {
    status = pull(s, &more, 1, &got);
  }
  if (status != PH_OK) {
    return status;
  }
  if (got > 0) {
    return refuse(s, PH_E_FORMAT, end, "expected the end of the file, found more bytes (first %02X)", more);
  }
  if (s->gzip && s->z.avail_in > 0) {
    char found[48];
    snprintf(found, sizeof found, "%u more bytes", s->z.avail_in);
    return refuse_gzip(s, s->n - s->z.avail_in, "the end of the file behind the gzip stream", found);
  }
  return PH_OK;
}

static ph_status read_source(source *s, int64_t limit, ph_tensor **out) {
  header h = {0};
  ph_tensor *t = NULL;
  ph_status status = source_init(s);
  if (status == PH_OK) {
    status = read_magic(s, &h);
  }
  if (status == PH_OK) {
    status = read_dims(s, &h, limit);
  }
  if (status == PH_OK) {
    status = check_size(s, &h);
  }
  if (status == PH_OK) {
    status = ph_tensor_new(&t, PH_U8, h.rank, h.dim, s->err);
  }
  if (status == PH_OK) {
    status = read_elements(s, &h, t->data);
  }
  source_fini(s);
  if (status == PH_OK) {
    *out = t;
  } else {
    ph_tensor_free(t);
  }
  return status;
}

ph_status ph_idx_read(const char *path, int64_t limit, ph_tensor **out, ph_err *err) {
  char *bytes;
  size_t n;
  if (limit <= 0 || limit > DEFAULT_LIMIT) {
    limit = DEFAULT_LIMIT;
  }
  ph_status status = ph_file_read(path, (size_t)DEFAULT_LIMIT + HEADER_MAX, &bytes, &n, err);
  if (status != PH_OK) {
    return status;
  }
  source s = {.path = path, .bytes = (unsigned char *)bytes, .n = n, .err = err};
  status = read_source(&s, limit, out);
  ph_mem_free(bytes);
  return status;
}

static ph_status check_pair(const char *images, const char *labels, int classes, const ph_tensor *x, const ph_tensor *y,
                            ph_err *err) {
  if (x->rank != 3) {
    return ph_err_set(err, PH_E_SHAPE, "%s: byte 3: expected 3 dimensions (images), found %d", images, x->rank);
  }
  if (y->rank != 1) {
    return ph_err_set(err, PH_E_SHAPE, "%s: byte 3: expected 1 dimension (labels), found %d", labels, y->rank);
  }
  if (x->dim[0] != y->dim[0]) {
    return ph_err_set(err, PH_E_SHAPE, "%s: byte 4: expected %lld labels, one per image in %s, found %lld", labels,
                      (long long)x->dim[0], images, (long long)y->dim[0]);
  }
  const unsigned char *label = y->data;
  for (int64_t i = 0; classes > 0 && i < y->dim[0]; i++) {
    if (label[i] >= classes) {
      return ph_err_set(err, PH_E_FORMAT, "%s: byte %lld: expected a label below %d, found %d", labels,
                        (long long)(MAGIC + 4 + i), classes, label[i]);
    }
  }
  return PH_OK;
}

ph_status ph_idx_pair(const char *images, const char *labels, int classes, ph_tensor **x, ph_tensor **y, ph_err *err) {
  ph_tensor *tx = NULL;
  ph_tensor *ty = NULL;
  ph_status status = ph_idx_read(images, 0, &tx, err);
  if (status == PH_OK) {
    status = ph_idx_read(labels, 0, &ty, err);
  }
  if (status == PH_OK) {
    status = check_pair(images, labels, classes, tx, ty, err);
  }
  if (status == PH_OK) {
    *x = tx;
    *y = ty;
    return PH_OK;
  }
  ph_tensor_free(tx);
  ph_tensor_free(ty);
  return status;
}
