/* store.h - run files: HDF5 images built in memory, written aside, fsynced, renamed. The only users of HDF5.
 *
 * HDF5 never writes to disk itself (a failed write crashes it at exit, its locks block readers): an image is built with
 * the core driver (no backing store, libver bounds earliest, time tracking off, fixed creation order), copied out, and
 * written by our own code. The same contents give the same bytes. Reading maps the file into memory first and opens
 * the image, so a reader never locks or disturbs a writer. HDF5's own printing is off; its error stack goes into `err`.
 */
#ifndef PH_STORE_STORE_H
#define PH_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tensor.h"

typedef struct ph_image ph_image;   /* a file being built, in memory */
typedef struct ph_reader ph_reader; /* a file being read, in memory */

ph_status ph_image_new(ph_image **out, ph_err *err) PH_MUST_CHECK;
void ph_image_free(ph_image *im);

/* A dataset at an absolute path "/group/name"; missing groups are made. Errors: PH_E_EXISTS, PH_E_NOMEM, PH_E_IO. */
ph_status ph_image_tensor(ph_image *im, const char *path, const ph_tensor *t, ph_err *err) PH_MUST_CHECK;
/* Text of any length and content (also empty, also with NUL bytes) as a one-dimensional uint8 dataset when it is longer
 * than 32 KiB or holds NUL, else as a fixed-length UTF-8 string scalar: h5dump and h5py show it as text. */
ph_status ph_image_text(ph_image *im, const char *path, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
/* A scalar attribute of an existing object ("/" for the root). */
ph_status ph_image_attr_f64(ph_image *im, const char *path, const char *name, double v, ph_err *err) PH_MUST_CHECK;
ph_status ph_image_attr_i64(ph_image *im, const char *path, const char *name, int64_t v, ph_err *err) PH_MUST_CHECK;
ph_status ph_image_attr_text(ph_image *im, const char *path, const char *name, const char *v, ph_err *err) PH_MUST_CHECK;

/* The finished bytes: *bytes owned by the caller (ph_mem_free). The image can not be extended afterwards. */
ph_status ph_image_finish(ph_image *im, void **bytes, size_t *n, ph_err *err) PH_MUST_CHECK;

/* Reads a whole file (or a given image) into memory and opens it. Errors: PH_E_NOTFOUND, PH_E_IO, PH_E_FORMAT (not HDF5, truncated). */
ph_status ph_reader_open(ph_reader **out, const char *file, ph_err *err) PH_MUST_CHECK;
void ph_reader_close(ph_reader *r);

typedef enum ph_item { PH_ITEM_NONE, PH_ITEM_GROUP, PH_ITEM_TENSOR, PH_ITEM_TEXT } ph_item;
ph_item ph_reader_kind(ph_reader *r, const char *path);
/* Calls fn(ctx, absolute path, kind) for every object below `path`, in name order; stops at a non-zero return, which it returns. */
int ph_reader_walk(ph_reader *r, const char *path, int (*fn)(void *ctx, const char *path, ph_item kind), void *ctx);
ph_status ph_reader_tensor(ph_reader *r, const char *path, ph_tensor **out, ph_err *err) PH_MUST_CHECK;
/* *text owned by the caller (ph_mem_free), NUL-terminated, *n without the NUL. */
ph_status ph_reader_text(ph_reader *r, const char *path, char **text, size_t *n, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_f64(ph_reader *r, const char *path, const char *name, double *v, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_i64(ph_reader *r, const char *path, const char *name, int64_t *v, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_text(ph_reader *r, const char *path, const char *name, char **v, ph_err *err) PH_MUST_CHECK;
bool ph_reader_has_attr(ph_reader *r, const char *path, const char *name);
/* Calls fn for each attribute name of an object, in name order. */
int ph_reader_attrs(ph_reader *r, const char *path, int (*fn)(void *ctx, const char *name), void *ctx);

#endif
