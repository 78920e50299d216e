/* reader.c - opening a run file, or any HDF5 file, in memory, and finding what is in it. See store.h; data come in read.c. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/h5.h"
#include "store/store.h"

/* deflate, the densest filter, makes at most 1032 bytes of one */
enum { INFLATE_MAX = 1032, DEPTH_MAX = 32, NAME_MAX_LENGTH = 1000, GROWTH = 1 << 16 };

static bool has_seal(const char *bytes, size_t n) {
  const size_t magic = strlen(PH_H5_MAGIC);
  return n >= magic && memcmp(bytes, PH_H5_MAGIC, magic) == 0;
}

/* A file with our line in front must match its hash; the rest is for HDF5 to judge. */
static ph_status check_seal(const char *file, const char *bytes, size_t n, ph_err *err) {
  char hex[65];
  const size_t magic = strlen(PH_H5_MAGIC);
  if (!has_seal(bytes, n)) {
    return PH_OK;
  }
  if (n <= PH_H5_BLOCK) {
    return ph_err_set(err, PH_E_FORMAT, "%s: cut off after %zu bytes", file, n);
  }
  ph_sha256(bytes + PH_H5_BLOCK, n - PH_H5_BLOCK, hex);
  if (memcmp(bytes + magic, hex, 64) == 0) {
    return PH_OK;
  }
  return ph_err_set(err, PH_E_FORMAT,
                    "%s: damaged or cut off: its contents have SHA-256 %.16s..., its first line says %.16s...", file,
                    hex, bytes + magic);
}

static hid_t open_image(const void *bytes, size_t n) {
  char name[64];
  hid_t file = -1;
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  ph_h5_name(name);
  /* HDF5 promises not to write through the pointer of H5Pset_file_image: it copies */
  if (H5Pset_fapl_core(fapl, GROWTH, 0) >= 0 && H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0 &&
      H5Pset_file_image(fapl, (void *)bytes, n) >= 0) {
    file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
  }
  H5Pclose(fapl);
  return file;
}

ph_status ph_reader_open_bytes(ph_reader **out, const char *file, const void *bytes, size_t n, ph_err *err) {
  ph_h5_start();
  if (n == 0) {
    return ph_err_set(err, PH_E_FORMAT, "%s: empty, not an HDF5 file", file);
  }
  ph_status status = check_seal(file, bytes, n, err);
  if (status != PH_OK) {
    return status;
  }
  ph_reader *r = ph_mem_new(1, sizeof *r);
  char *name = ph_mem_strdup(file);
  if (!r || !name) {
    status = ph_err_set(err, PH_E_NOMEM, "%s: out of memory", file);
  } else {
    *r = (ph_reader){
        .file = open_image(bytes, n), .name = name, .most = (uint64_t)n * INFLATE_MAX, .sealed = has_seal(bytes, n)};
    if (r->file < 0) {
      status = ph_h5_fail(err, PH_E_FORMAT, "%s: not a readable HDF5 file", file);
    }
  }
  if (status != PH_OK) {
    ph_mem_free(r);
    ph_mem_free(name);
    return status;
  }
  *out = r;
  return PH_OK;
}

ph_status ph_reader_open(ph_reader **out, const char *file, ph_err *err) {
  char *bytes;
  size_t n;
  ph_status status = ph_file_read(file, 0, &bytes, &n, err);
  if (status != PH_OK) {
    return status;
  }
  status = ph_reader_open_bytes(out, file, bytes, n, err);
  ph_mem_free(bytes);
  return status;
}

bool ph_reader_sealed(const ph_reader *r) { return r->sealed; }

void ph_reader_close(ph_reader *r) {
  if (!r) {
    return;
  }
  H5Fclose(r->file);
  H5garbage_collect();
  ph_mem_free(r->name);
  ph_mem_free(r);
}

/* Opens the child `name[0..n)` of `group` if a hard link leads to it: other links may leave the file. */
static hid_t open_child(hid_t group, const char *name, size_t n) {
  char copy[NAME_MAX_LENGTH + 1];
  H5L_info_t link;
  if (n > NAME_MAX_LENGTH) {
    return -1;
  }
  memcpy(copy, name, n);
  copy[n] = '\0';
  if (H5Lget_info(group, copy, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) {
    return -1;
  }
  return H5Oopen(group, copy, H5P_DEFAULT);
}

int64_t ph_h5_find(ph_reader *r, const char *path) {
  hid_t at = ph_h5_path_ok(path) ? H5Oopen(r->file, "/", H5P_DEFAULT) : -1;
  for (const char *p = path + 1; at >= 0 && *p;) {
    const char *end = strchrnul(p, '/');
    hid_t next = H5Iget_type(at) == H5I_GROUP ? open_child(at, p, (size_t)(end - p)) : -1;
    H5Oclose(at);
    at = next;
    p = *end ? end + 1 : end;
  }
  return at;
}

bool ph_h5_dtype(int64_t type, ph_dtype *dtype, int64_t *mem) {
  H5T_class_t class = H5Tget_class(type);
  size_t size = H5Tget_size(type);
  bool is_signed = class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  if (class == H5T_FLOAT && size <= 8) {
    *dtype = size <= 4 ? PH_F32 : PH_F64;
    *mem = size <= 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  } else if (class == H5T_INTEGER && size == 1 && !is_signed) {
    *dtype = PH_U8;
    *mem = H5T_NATIVE_UINT8;
  } else if (class == H5T_INTEGER && (size <= 2 || (size == 4 && is_signed))) {
    *dtype = PH_I32;
    *mem = H5T_NATIVE_INT32;
  } else if (class == H5T_INTEGER && size <= 8) {
    *dtype = PH_I64;
    *mem = H5T_NATIVE_INT64;
  } else {
    return false;
  }
  return true;
}

/* A scalar string, or bytes that ph_image_text marked as text. */
static bool is_text(hid_t set, hid_t type, hid_t space) {
  ph_dtype dtype;
  int64_t mem;
  if (H5Tget_class(type) == H5T_STRING) {
    return H5Sget_simple_extent_npoints(space) == 1;
  }
  return H5Sget_simple_extent_ndims(space) == 1 && H5Aexists(set, PH_H5_ENCODING) > 0 &&
         ph_h5_dtype(type, &dtype, &mem) && dtype == PH_U8;
}

ph_item ph_h5_kind(int64_t obj) {
  ph_item kind = PH_ITEM_NONE;
  ph_dtype dtype;
  int64_t mem;
  H5I_type_t id = H5Iget_type(obj);
  if (id == H5I_GROUP) {
    return PH_ITEM_GROUP;
  }
  if (id != H5I_DATASET) {
    return PH_ITEM_NONE;
  }
  hid_t type = H5Dget_type(obj);
  hid_t space = H5Dget_space(obj);
  if (type >= 0 && space >= 0) {
    if (is_text(obj, type, space)) {
      kind = PH_ITEM_TEXT;
    } else if (ph_h5_dtype(type, &dtype, &mem)) {
      kind = PH_ITEM_TENSOR;
    }
  }
  if (type >= 0) {
    H5Tclose(type);
  }
  if (space >= 0) {
    H5Sclose(space);
  }
  return kind;
}

ph_item ph_reader_kind(ph_reader *r, const char *path) {
  hid_t obj = ph_h5_find(r, path);
  if (obj < 0) {
    return PH_ITEM_NONE;
  }
  ph_item kind = ph_h5_kind(obj);
  H5Oclose(obj);
  return kind;
}

typedef int walk_fn(void *ctx, const char *path, ph_item kind);

typedef struct walk {
  walk_fn *fn;
  void *ctx;
  const char *path; /* of the group we are in, "" for the root */
  const struct walk *up;
  haddr_t addr;
  int depth;
  int result;
} walk;

static bool is_above(const walk *w, haddr_t addr) {
  for (; w; w = w->up) {
    if (w->addr == addr) {
      return true;
    }
  }
  return false;
}

static herr_t walk_link(hid_t group, const char *name, const H5L_info_t *link, void *ctx);

static void walk_group(hid_t group, walk *w) {
  hsize_t at = 0;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, walk_link, w) < 0 && w->result == 0) {
    w->result = -1;
  }
}

static void walk_object(hid_t obj, const char *path, walk *w) {
  H5O_info_t info;
  ph_item kind = ph_h5_kind(obj);
  if (kind == PH_ITEM_NONE) {
    return;
  }
  w->result = w->fn(w->ctx, path, kind);
  if (w->result != 0 || kind != PH_ITEM_GROUP || w->depth >= DEPTH_MAX) {
    return;
  }
  if (H5Oget_info2(obj, &info, H5O_INFO_BASIC) < 0 || is_above(w, info.addr)) {
    return;
  }
  walk below = {.fn = w->fn, .ctx = w->ctx, .path = path, .up = w, .addr = info.addr, .depth = w->depth + 1};
  walk_group(obj, &below);
  w->result = below.result;
}

static herr_t walk_link(hid_t group, const char *name, const H5L_info_t *link, void *ctx) {
  walk *w = ctx;
  if (link->type != H5L_TYPE_HARD) {
    return 0;
  }
  hid_t obj = H5Oopen(group, name, H5P_DEFAULT);
  if (obj < 0) {
    return 0;
  }
  size_t n = strlen(w->path) + strlen(name) + 2;
  char *path = ph_mem_new(n, 1);
  if (path) {
    snprintf(path, n, "%s/%s", w->path, name);
    walk_object(obj, path, w);
    ph_mem_free(path);
  } else {
    w->result = -1;
  }
  H5Oclose(obj);
  return w->result != 0 ? 1 : 0;
}

int ph_reader_walk(ph_reader *r, const char *path, walk_fn *fn, void *ctx) {
  H5O_info_t info;
  walk w = {.fn = fn, .ctx = ctx, .path = path[1] ? path : "", .addr = HADDR_UNDEF};
  hid_t obj = ph_h5_find(r, path);
  if (obj < 0) {
    return 0;
  }
  if (H5Iget_type(obj) == H5I_GROUP && H5Oget_info2(obj, &info, H5O_INFO_BASIC) >= 0) {
    w.addr = info.addr;
    walk_group(obj, &w);
  }
  H5Oclose(obj);
  return w.result;
}
