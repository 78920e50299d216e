/* read.c - tensors, texts and attributes out of an open reader. See store.h. */
#include <hdf5.h>
#include <string.h>

#include "base/mem.h"
#include "store/h5.h"
#include "store/store.h"

_Static_assert(sizeof(hid_t) == sizeof(int64_t), "h5.h carries handles as int64_t");

static ph_status not_found(const ph_reader *r, const char *path, ph_err *err) {
  return ph_err_set(err, PH_E_NOTFOUND, "%s: has no '%s'", r->name, path);
}

static const char *kind_name(ph_item kind) {
  static const char *const name[] = {"of a kind that phrun does not read", "a group", "a tensor", "a text"};
  return name[kind];
}

/* An open dataset with all that is needed to read it; handles -1 where closed. */
typedef struct dataset {
  hid_t set, type, space;
  int rank;
  int64_t dim[H5S_MAX_RANK];
  uint64_t count;
} dataset;

static void dataset_close(dataset *d) {
  if (d->space >= 0) {
    H5Sclose(d->space);
  }
  if (d->type >= 0) {
    H5Tclose(d->type);
  }
  if (d->set >= 0) {
    H5Oclose(d->set);
  }
}

/* Storage inside this file, and no more elements than it can hold. */
static ph_status dataset_check(const ph_reader *r, const char *path, dataset *d, ph_err *err) {
  hsize_t dim[H5S_MAX_RANK];
  hid_t dcpl = H5Dget_create_plist(d->set);
  bool outside = dcpl < 0 || H5Pget_external_count(dcpl) != 0 || H5Pget_layout(dcpl) == H5D_VIRTUAL;
  if (dcpl >= 0) {
    H5Pclose(dcpl);
  }
  if (outside) {
    return ph_err_set(err, PH_E_FORMAT, "%s: '%s' keeps its data outside this file", r->name, path);
  }
  d->rank = H5Sget_simple_extent_dims(d->space, dim, NULL);
  d->count = H5Sget_simple_extent_type(d->space) == H5S_NULL ? 0 : 1;
  size_t size = H5Tget_size(d->type);
  if (d->rank < 0 || size == 0) {
    return ph_h5_fail(err, PH_E_FORMAT, "%s: '%s' has no readable shape", r->name, path);
  }
  for (int i = 0; i < d->rank; i++) {
    if (__builtin_mul_overflow(d->count, dim[i], &d->count) || dim[i] > r->most) {
      d->count = UINT64_MAX;
    }
    d->dim[i] = (int64_t)dim[i];
  }
  if (d->count > r->most / size) {
    return ph_err_set(err, PH_E_FORMAT, "%s: '%s' claims more data than the file can hold", r->name, path);
  }
  return PH_OK;
}

/* Opens d for reading as `want`. Whatever it returns, the caller calls dataset_close. */
static ph_status dataset_open(ph_reader *r, const char *path, ph_item want, dataset *d, ph_err *err) {
  *d = (dataset){.set = ph_h5_find(r, path), .type = -1, .space = -1};
  if (d->set < 0) {
    return not_found(r, path, err);
  }
  ph_item kind = ph_h5_kind(d->set);
  if (kind != want) {
    return ph_err_set(err, PH_E_DTYPE, "%s: '%s' is %s, not %s", r->name, path, kind_name(kind), kind_name(want));
  }
  d->type = H5Dget_type(d->set);
  d->space = H5Dget_space(d->set);
  if (d->type < 0 || d->space < 0) {
    return ph_h5_fail(err, PH_E_FORMAT, "%s: '%s' is not readable", r->name, path);
  }
  return dataset_check(r, path, d, err);
}

/* HDF5 clips on conversion: u64 values above the range of i64 would change silently. */
static bool clips(const dataset *d, ph_dtype dtype, const ph_tensor *t) {
  if (dtype != PH_I64 || H5Tget_size(d->type) < 8 || H5Tget_sign(d->type) != H5T_SGN_NONE) {
    return false;
  }
  for (uint64_t i = 0; i < d->count; i++) {
    if (((const int64_t *)t->data)[i] == INT64_MAX) {
      return true;
    }
  }
  return false;
}

ph_status ph_reader_tensor(ph_reader *r, const char *path, ph_tensor **out, ph_err *err) {
  dataset d;
  ph_dtype dtype;
  int64_t mem;
  ph_tensor *t = NULL;
  ph_status status = dataset_open(r, path, PH_ITEM_TENSOR, &d, err);
  if (status == PH_OK && !ph_h5_dtype(d.type, &dtype, &mem)) {
    status = ph_err_set(err, PH_E_DTYPE, "%s: '%s' has no readable type", r->name, path);
  }
  if (status == PH_OK && d.rank > PH_RANK_MAX) {
    status =
        ph_err_set(err, PH_E_SHAPE, "%s: '%s' has %d dimensions, more than %d", r->name, path, d.rank, PH_RANK_MAX);
  }
  if (status == PH_OK) {
    status = ph_tensor_new(&t, dtype, d.rank, d.dim, err);
  }
  if (status == PH_OK && d.count > 0 && H5Dread(d.set, mem, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) < 0) {
    status = ph_h5_fail(err, PH_E_FORMAT, "%s: cannot read '%s'", r->name, path);
  }
  if (status == PH_OK && clips(&d, dtype, t)) {
    status = ph_err_set(err, PH_E_DTYPE, "%s: '%s' holds unsigned numbers beyond 64 bits signed", r->name, path);
  }
  dataset_close(&d);
  if (status == PH_OK) {
    *out = t;
  } else {
    ph_tensor_free(t);
  }
  return status;
}

/* The length of a fixed-length string by its padding. */
static size_t string_length(hid_t type, const char *text, size_t size) {
  if (H5Tget_strpad(type) == H5T_STR_NULLTERM) {
    return strnlen(text, size);
  }
  char pad = H5Tget_strpad(type) == H5T_STR_SPACEPAD ? ' ' : '\0';
  while (size > 0 && text[size - 1] == pad) {
    size--;
  }
  return size;
}

/* Reads one element of `type` from a dataset or an attribute. */
static bool read_one(hid_t obj, hid_t type, void *to) {
  if (H5Iget_type(obj) == H5I_ATTR) {
    return H5Aread(obj, type, to) >= 0;
  }
  return H5Dread(obj, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0;
}

/* A string of any length: HDF5 allocates, we copy. This and the next two return PH_E_FORMAT or PH_E_NOMEM without a text. */
static ph_status read_variable(hid_t obj, hid_t type, char **text, size_t *n) {
  char *theirs = NULL;
  hid_t mem = H5Tcopy(H5T_C_S1);
  H5Tset_size(mem, H5T_VARIABLE);
  H5Tset_cset(mem, H5Tget_cset(type));
  bool read = read_one(obj, mem, &theirs);
  H5Tclose(mem);
  if (!read) {
    return PH_E_FORMAT;
  }
  *text = ph_mem_strdup(theirs ? theirs : "");
  H5free_memory(theirs);
  if (!*text) {
    return PH_E_NOMEM;
  }
  *n = strlen(*text);
  return PH_OK;
}

/* The one string of a dataset or attribute with a NUL behind it. */
static ph_status read_string(hid_t obj, hid_t type, char **text, size_t *n) {
  if (H5Tis_variable_str(type) > 0) {
    return read_variable(obj, type, text, n);
  }
  size_t size = H5Tget_size(type);
  char *copy = ph_mem_new(size + 1, 1);
  if (!copy) {
    return PH_E_NOMEM;
  }
  if (!read_one(obj, type, copy)) {
    ph_mem_free(copy);
    return PH_E_FORMAT;
  }
  *n = string_length(type, copy, size);
  copy[*n] = '\0';
  *text = copy;
  return PH_OK;
}

static ph_status read_bytes(const dataset *d, char **text, size_t *n) {
  char *copy = ph_mem_new(d->count + 1, 1);
  if (!copy) {
    return PH_E_NOMEM;
  }
  if (d->count > 0 && !read_one(d->set, H5T_NATIVE_UINT8, copy)) {
    ph_mem_free(copy);
    return PH_E_FORMAT;
  }
  *n = d->count;
  *text = copy;
  return PH_OK;
}

static ph_status say_unread(const ph_reader *r, const char *what, ph_status status, ph_err *err) {
  if (status == PH_E_NOMEM) {
    return ph_err_set(err, status, "%s: no memory for '%s'", r->name, what);
  }
  return ph_h5_fail(err, status, "%s: cannot read '%s'", r->name, what);
}

ph_status ph_reader_text(ph_reader *r, const char *path, char **text, size_t *n, ph_err *err) {
  dataset d;
  ph_status status = dataset_open(r, path, PH_ITEM_TEXT, &d, err);
  if (status == PH_OK) {
    status = H5Tget_class(d.type) == H5T_STRING ? read_string(d.set, d.type, text, n) : read_bytes(&d, text, n);
    if (status != PH_OK) {
      status = say_unread(r, path, status, err);
    }
  }
  dataset_close(&d);
  return status;
}

/* An open scalar attribute; handles -1 where closed. */
typedef struct attribute {
  hid_t attr, type;
} attribute;

static void attribute_close(attribute *a) {
  if (a->type >= 0) {
    H5Tclose(a->type);
  }
  if (a->attr >= 0) {
    H5Aclose(a->attr);
  }
}

static ph_status attribute_open(ph_reader *r, const char *path, const char *name, attribute *a, ph_err *err) {
  *a = (attribute){-1, -1};
  hid_t obj = ph_h5_find(r, path);
  if (obj < 0) {
    return not_found(r, path, err);
  }
  bool there = name[0] && H5Aexists(obj, name) > 0;
  if (there) {
    a->attr = H5Aopen(obj, name, H5P_DEFAULT);
  }
  H5Oclose(obj);
  if (!there) {
    return ph_err_set(err, PH_E_NOTFOUND, "%s: '%s' has no attribute '%s'", r->name, path, name);
  }
  hid_t space = a->attr < 0 ? -1 : H5Aget_space(a->attr);
  hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
  if (space >= 0) {
    H5Sclose(space);
  }
  if (count >= 0) {
    a->type = H5Aget_type(a->attr);
  }
  if (a->type < 0) {
    return ph_h5_fail(err, PH_E_FORMAT, "%s: cannot read attribute '%s' of '%s'", r->name, name, path);
  }
  if (count != 1) {
    return ph_err_set(err, PH_E_SHAPE, "%s: attribute '%s' of '%s' is not one value", r->name, name, path);
  }
  return PH_OK;
}

static ph_status wrong_type(const ph_reader *r, const char *path, const char *name, const char *want, ph_err *err) {
  return ph_err_set(err, PH_E_DTYPE, "%s: attribute '%s' of '%s' is not %s", r->name, name, path, want);
}

static ph_status attr_number(ph_reader *r, const char *path, const char *name, bool real, void *v, ph_err *err) {
  attribute a;
  ph_status status = attribute_open(r, path, name, &a, err);
  if (status == PH_OK) {
    H5T_class_t class = H5Tget_class(a.type);
    if (class != H5T_INTEGER && !(real && class == H5T_FLOAT)) {
      status = wrong_type(r, path, name, real ? "a number" : "an integer", err);
    } else if (H5Aread(a.attr, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, v) < 0) {
      status = ph_h5_fail(err, PH_E_FORMAT, "%s: cannot read attribute '%s' of '%s'", r->name, name, path);
    }
  }
  attribute_close(&a);
  return status;
}

ph_status ph_reader_attr_f64(ph_reader *r, const char *path, const char *name, double *v, ph_err *err) {
  double value;
  ph_status status = attr_number(r, path, name, true, &value, err);
  if (status == PH_OK) {
    *v = value;
  }
  return status;
}

ph_status ph_reader_attr_i64(ph_reader *r, const char *path, const char *name, int64_t *v, ph_err *err) {
  int64_t value;
  ph_status status = attr_number(r, path, name, false, &value, err);
  if (status == PH_OK) {
    *v = value;
  }
  return status;
}

ph_status ph_reader_attr_text(ph_reader *r, const char *path, const char *name, char **v, ph_err *err) {
  attribute a;
  size_t n;
  ph_status status = attribute_open(r, path, name, &a, err);
  if (status == PH_OK && H5Tget_class(a.type) != H5T_STRING) {
    status = wrong_type(r, path, name, "text", err);
  } else if (status == PH_OK) {
    status = read_string(a.attr, a.type, v, &n);
    if (status != PH_OK) {
      status = say_unread(r, name, status, err);
    }
  }
  attribute_close(&a);
  return status;
}

bool ph_reader_has_attr(ph_reader *r, const char *path, const char *name) {
  hid_t obj = ph_h5_find(r, path);
  if (obj < 0) {
    return false;
  }
  bool there = name[0] && H5Aexists(obj, name) > 0;
  H5Oclose(obj);
  return there;
}

typedef struct attr_walk {
  int (*fn)(void *ctx, const char *name);
  void *ctx;
  int result;
} attr_walk;

static herr_t walk_attr(hid_t obj, const char *name, const H5A_info_t *info, void *ctx) {
  (void)obj;
  (void)info;
  attr_walk *w = ctx;
  if (strcmp(name, PH_H5_ENCODING) != 0) {
    w->result = w->fn(w->ctx, name);
  }
  return w->result != 0 ? 1 : 0;
}

int ph_reader_attrs(ph_reader *r, const char *path, int (*fn)(void *ctx, const char *name), void *ctx) {
  attr_walk w = {fn, ctx, 0};
  hsize_t at = 0;
  hid_t obj = ph_h5_find(r, path);
  if (obj < 0) {
    return 0;
  }
  if (H5Aiterate2(obj, H5_INDEX_NAME, H5_ITER_INC, &at, walk_attr, &w) < 0 && w.result == 0) {
    w.result = -1;
  }
  H5Oclose(obj);
  return w.result;
}
