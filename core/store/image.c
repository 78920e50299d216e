/* image.c - building a run file in memory. See store.h. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/h5.h"
#include "store/store.h"

enum { GROWTH = 1 << 20, TEXT_MAX = 32 << 10, ATTR_MAX = 60000 };

struct ph_image {
  hid_t file; /* -1 when finished */
};

static hid_t make_file(void) {
  char name[64];
  hid_t file = -1;
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
  bool ok = H5Pset_fapl_core(fapl, GROWTH, 0) >= 0 && H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0 &&
            H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) >= 0 &&
            H5Pset_userblock(fcpl, PH_H5_BLOCK) >= 0 && H5Pset_obj_track_times(fcpl, false) >= 0;
  ph_h5_name(name);
  if (ok) {
    file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl);
  }
  H5Pclose(fapl);
  H5Pclose(fcpl);
  return file;
}

ph_status ph_image_new(ph_image **out, ph_err *err) {
  ph_h5_start();
  ph_image *im = ph_mem_new(1, sizeof *im);
  if (!im) {
    return ph_err_set(err, PH_E_NOMEM, "image: out of memory");
  }
  im->file = make_file();
  if (im->file < 0) {
    ph_mem_free(im);
    return ph_h5_fail(err, PH_E_INTERNAL, "cannot start an image");
  }
  *out = im;
  return PH_OK;
}

void ph_image_free(ph_image *im) {
  if (!im) {
    return;
  }
  if (im->file >= 0) {
    H5Fclose(im->file);
  }
  H5garbage_collect(); /* HDF5 keeps freed blocks; a run writes few files and has better use for them */
  ph_mem_free(im);
}

static ph_status check(const ph_image *im, const char *path, ph_err *err) {
  if (im->file < 0) {
    return ph_err_set(err, PH_E_ARG, "%s: the image is finished", path);
  }
  if (!ph_h5_path_ok(path)) {
    return ph_err_set(err, PH_E_ARG, "'%s': not an absolute path inside a run file", path);
  }
  return PH_OK;
}

/* Group `path[0..n)` exists afterwards; made without a time stamp. */
static ph_status make_group(ph_image *im, const char *path, size_t n, ph_err *err) {
  H5O_info_t info;
  ph_status status = PH_OK;
  char *name = ph_mem_new(n + 1, 1);
  if (!name) {
    return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
  }
  memcpy(name, path, n);
  if (H5Lexists(im->file, name, H5P_DEFAULT) > 0) {
    if (H5Oget_info_by_name2(im->file, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 || info.type != H5O_TYPE_GROUP) {
      status = ph_err_set(err, PH_E_EXISTS, "%s: '%s' is a dataset, not a group", path, name);
    }
  } else {
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(gcpl, false);
    hid_t group = H5Gcreate2(im->file, name, H5P_DEFAULT, gcpl, H5P_DEFAULT);
    if (group < 0) {
      status = ph_h5_fail(err, PH_E_INTERNAL, "cannot make group '%s'", name);
    }
    if (group >= 0) {
      H5Gclose(group);
    }
    H5Pclose(gcpl);
  }
  ph_mem_free(name);
  return status;
}

/* Makes the groups above `path` and checks that it is free. */
static ph_status make_room(ph_image *im, const char *path, ph_err *err) {
  ph_status status = check(im, path, err);
  for (const char *p = path + 1; status == PH_OK && (p = strchr(p, '/')); p++) {
    status = make_group(im, path, (size_t)(p - path), err);
  }
  if (status != PH_OK) {
    return status;
  }
  if (path[1] == '\0' || H5Lexists(im->file, path, H5P_DEFAULT) > 0) {
    return ph_err_set(err, PH_E_EXISTS, "'%s' is already in the image", path);
  }
  return PH_OK;
}

/* Contiguous, no fill values, no time stamp: the bytes depend on the data alone. Takes and closes `space`. */
static ph_status write_dataset(ph_image *im, const char *path, hid_t type, hid_t mem, hid_t space, const void *data,
                               ph_err *err) {
  ph_status status = PH_OK;
  hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(dcpl, H5D_CONTIGUOUS);
  H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(dcpl, false);
  hid_t set = H5Dcreate2(im->file, path, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  if (set < 0 ||
      (H5Sget_simple_extent_npoints(space) > 0 && H5Dwrite(set, mem, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)) {
    status = ph_h5_fail(err, PH_E_INTERNAL, "cannot put '%s' into the image", path);
  }
  if (set >= 0) {
    H5Dclose(set);
  }
  H5Pclose(dcpl);
  H5Sclose(space);
  return status;
}

static hid_t space_of(int rank, const int64_t *dim) {
  hsize_t size[PH_RANK_MAX] = {0};
  for (int i = 0; i < rank; i++) {
    size[i] = (hsize_t)dim[i];
  }
  return rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, size, NULL);
}

ph_status ph_image_tensor(ph_image *im, const char *path, const ph_tensor *t, ph_err *err) {
  ph_status status = make_room(im, path, err);
  if (status != PH_OK) {
    return status;
  }
  const hid_t type[] = {[PH_F32] = H5T_IEEE_F32LE,
                        [PH_F64] = H5T_IEEE_F64LE,
                        [PH_I32] = H5T_STD_I32LE,
                        [PH_U8] = H5T_STD_U8LE,
                        [PH_I64] = H5T_STD_I64LE};
  const hid_t mem[] = {[PH_F32] = H5T_NATIVE_FLOAT,
                       [PH_F64] = H5T_NATIVE_DOUBLE,
                       [PH_I32] = H5T_NATIVE_INT32,
                       [PH_U8] = H5T_NATIVE_UINT8,
                       [PH_I64] = H5T_NATIVE_INT64};
  return write_dataset(im, path, type[t->dtype], mem[t->dtype], space_of(t->rank, t->dim), t->data, err);
}

/* A fixed-length string type; an empty text is one NUL, which the null padding hides. */
static hid_t string_type(size_t n) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, n ? n : 1);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/* Bytes of the UTF-8 character at p, 0 if there is none in p[0..n): overlong forms, surrogates and > U+10FFFF are none. */
static size_t utf8_char(const unsigned char *p, size_t n) {
  if (p[0] < 0x80) {
    return 1;
  }
  size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) {
    return 0;
  }
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80) {
      return 0;
    }
  }
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) {
    return 0;
  }
  if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) {
    return 0;
  }
  return len;
}

static bool is_utf8(const char *text, size_t n) {
  for (size_t i = 0, k; i < n; i += k) {
    if ((k = utf8_char((const unsigned char *)text + i, n - i)) == 0) {
      return false;
    }
  }
  return true;
}

static ph_status write_attr(ph_image *im, const char *path, const char *name, hid_t type, hid_t mem, const void *data,
                            ph_err *err) {
  ph_status status = PH_OK;
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attr = H5Acreate_by_name(im->file, path, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (attr < 0 || H5Awrite(attr, mem, data) < 0) {
    status = ph_h5_fail(err, PH_E_INTERNAL, "cannot put attribute '%s' of '%s' into the image", name, path);
  }
  if (attr >= 0) {
    H5Aclose(attr);
  }
  H5Sclose(space);
  return status;
}

static ph_status write_text_attr(ph_image *im, const char *path, const char *name, const char *v, ph_err *err) {
  hid_t type = string_type(strlen(v));
  ph_status status = write_attr(im, path, name, type, type, v, err); /* of "" the NUL is written */
  H5Tclose(type);
  return status;
}

static ph_status write_bytes(ph_image *im, const char *path, const char *text, size_t n, bool utf8, ph_err *err) {
  int64_t dim = (int64_t)n;
  ph_status status = write_dataset(im, path, H5T_STD_U8LE, H5T_NATIVE_UINT8, space_of(1, &dim), text, err);
  return status == PH_OK ? write_text_attr(im, path, PH_H5_ENCODING, utf8 ? "utf-8" : "bytes", err) : status;
}

ph_status ph_image_text(ph_image *im, const char *path, const char *text, size_t n, ph_err *err) {
  ph_status status = make_room(im, path, err);
  if (status != PH_OK) {
    return status;
  }
  bool utf8 = is_utf8(text, n);
  if (n > TEXT_MAX || !utf8 || memchr(text, '\0', n)) {
    return write_bytes(im, path, text, n, utf8, err);
  }
  hid_t type = string_type(n);
  status = write_dataset(im, path, type, type, H5Screate(H5S_SCALAR), n ? text : "", err);
  H5Tclose(type);
  return status;
}

static ph_status check_attr(ph_image *im, const char *path, const char *name, ph_err *err) {
  ph_status status = check(im, path, err);
  if (status != PH_OK) {
    return status;
  }
  if (path[1] != '\0' && H5Lexists(im->file, path, H5P_DEFAULT) <= 0) {
    return ph_err_set(err, PH_E_NOTFOUND, "'%s' is not in the image: attribute '%s' has no place", path, name);
  }
  if (name[0] == '\0' || strcmp(name, PH_H5_ENCODING) == 0 || !is_utf8(name, strlen(name))) {
    return ph_err_set(err, PH_E_ARG, "'%s': '%s' cannot be the name of an attribute", path, name);
  }
  if (H5Aexists_by_name(im->file, path, name, H5P_DEFAULT) > 0) {
    return ph_err_set(err, PH_E_EXISTS, "'%s' already has an attribute '%s'", path, name);
  }
  return PH_OK;
}

ph_status ph_image_attr_f64(ph_image *im, const char *path, const char *name, double v, ph_err *err) {
  ph_status status = check_attr(im, path, name, err);
  return status == PH_OK ? write_attr(im, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &v, err) : status;
}

ph_status ph_image_attr_i64(ph_image *im, const char *path, const char *name, int64_t v, ph_err *err) {
  ph_status status = check_attr(im, path, name, err);
  return status == PH_OK ? write_attr(im, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &v, err) : status;
}

ph_status ph_image_attr_text(ph_image *im, const char *path, const char *name, const char *v, ph_err *err) {
  ph_status status = check_attr(im, path, name, err);
  if (status != PH_OK) {
    return status;
  }
  size_t n = strlen(v);
  if (n > ATTR_MAX) {
    return ph_err_set(err, PH_E_LIMIT, "'%s': attribute '%s' has %zu bytes, more than %d: long text is a dataset", path,
                      name, n, ATTR_MAX);
  }
  if (!is_utf8(v, n)) {
    return ph_err_set(err, PH_E_ARG, "'%s': attribute '%s' is not UTF-8 text", path, name);
  }
  return write_text_attr(im, path, name, v, err);
}

/* Fills the user block: the line that lets a reader find damage before HDF5 does. */
static void sign(char *bytes, size_t n) {
  char hex[65];
  ph_sha256(bytes + PH_H5_BLOCK, n, hex);
  snprintf(bytes, PH_H5_BLOCK, "%s%s\n", PH_H5_MAGIC, hex);
}

ph_status ph_image_finish(ph_image *im, void **bytes, size_t *n, ph_err *err) {
  if (im->file < 0) {
    return ph_err_set(err, PH_E_ARG, "the image is already finished");
  }
  ssize_t size =
      H5Fflush(im->file, H5F_SCOPE_LOCAL) < 0 ? -1 : H5Fget_file_image(im->file, NULL, 0); /* without user block */
  if (size <= 0) {
    return ph_h5_fail(err, PH_E_INTERNAL, "cannot finish the image");
  }
  char *copy = ph_mem_new(PH_H5_BLOCK + (size_t)size, 1);
  if (!copy) {
    return ph_err_set(err, PH_E_NOMEM, "image: no memory for its %zd bytes", size);
  }
  if (H5Fget_file_image(im->file, copy + PH_H5_BLOCK, (size_t)size) != size) {
    ph_mem_free(copy);
    return ph_h5_fail(err, PH_E_INTERNAL, "cannot copy the image");
  }
  H5Fclose(im->file);
  im->file = -1;
  sign(copy, (size_t)size);
  *bytes = copy;
  *n = PH_H5_BLOCK + (size_t)size;
  return PH_OK;
}
