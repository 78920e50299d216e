/* store.h - run files: HDF5 images built in memory, written aside, fsynced, renamed. The only users of HDF5.
 *
 * HDF5 never writes to disk itself (a failed write crashes it at exit, its locks block readers): an image is built with
 * the core driver (no backing store, libver bounds earliest, time tracking off, fixed creation order), copied out, and
 * written by our own code. The same contents, added in the same order, give the same bytes. Reading takes the file into
 * memory first and opens the image, so a reader never locks or disturbs a writer. HDF5's own printing is off; its error
 * stack goes into `err`.
 *
 * HDF5 checks little of what it reads: a flipped byte of data goes unnoticed, and forged structures have crashed it before. So
 * an image starts with a 512-byte user block (a part of the HDF5 format that every HDF5 program skips) with one line of text,
 * the SHA-256 of all that follows, and a reader checks it before HDF5 sees a byte. Files of other programs have no such line;
 * for them links out of the file, external storage and plugins are refused, and a dataset cannot claim more than its file
 * could inflate to.
 *
 * Not for several threads at once.
 */
#ifndef PH_STORE_STORE_H
#define PH_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tensor.h"

typedef struct ph_image ph_image;   /* a file being built, in memory */
typedef struct ph_reader ph_reader; /* a file being read, in memory */

/* "1.10.8": the version of HDF5, which does not run with a library of another version than its headers. */
const char *ph_store_hdf5(void);

ph_status ph_image_new(ph_image **out, ph_err *err) PH_MUST_CHECK;
void ph_image_free(ph_image *im);

/* A dataset at an absolute path "/group/name"; missing groups are made. Errors: PH_E_EXISTS, PH_E_NOMEM, PH_E_ARG (a path that
 * is not absolute or has an empty, "." or ".." part), PH_E_INTERNAL. A failed call may leave new groups behind. */
ph_status ph_image_tensor(ph_image *im, const char *path, const ph_tensor *t, ph_err *err) PH_MUST_CHECK;
/* Text of any length and content (also empty, also with NUL bytes): a fixed-length UTF-8 string scalar, which h5dump and
 * h5py show as text; when it is longer than 32 KiB, holds NUL or is not UTF-8, a one-dimensional uint8 dataset with the
 * attribute `encoding` = "utf-8" or "bytes" (`h5dump -r` shows it, h5py: bytes(f[path])). */
ph_status ph_image_text(ph_image *im, const char *path, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
/* A scalar attribute of an existing object ("/" for the root). Text up to 60,000 bytes, without NUL. Errors: PH_E_NOTFOUND,
 * PH_E_EXISTS, PH_E_LIMIT, PH_E_ARG (empty name, the name "encoding", text that is not UTF-8). */
ph_status ph_image_attr_f64(ph_image *im, const char *path, const char *name, double v, ph_err *err) PH_MUST_CHECK;
ph_status ph_image_attr_i64(ph_image *im, const char *path, const char *name, int64_t v, ph_err *err) PH_MUST_CHECK;
ph_status ph_image_attr_text(ph_image *im, const char *path, const char *name, const char *v,
                             ph_err *err) PH_MUST_CHECK;

/* The finished bytes: *bytes owned by the caller (ph_mem_free). The image cannot be extended afterwards. */
ph_status ph_image_finish(ph_image *im, void **bytes, size_t *n, ph_err *err) PH_MUST_CHECK;

/* Reads a whole file (or bytes given, borrowed for the call; `file` then only names them in messages) into memory and opens
 * it. Errors: PH_E_NOTFOUND, PH_E_IO, PH_E_NOMEM, PH_E_FORMAT (not HDF5, truncated, damaged). */
ph_status ph_reader_open(ph_reader **out, const char *file, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_open_bytes(ph_reader **out, const char *file, const void *bytes, size_t n,
                               ph_err *err) PH_MUST_CHECK;
/* Whether the file began with our line, and so is whole as it was written. */
bool ph_reader_sealed(const ph_reader *r);
void ph_reader_close(ph_reader *r);

/* What is at a path. NONE: nothing, or something that phrun does not read (links out of the file, other element types). */
typedef enum ph_item { PH_ITEM_NONE, PH_ITEM_GROUP, PH_ITEM_TENSOR, PH_ITEM_TEXT } ph_item;
ph_item ph_reader_kind(ph_reader *r, const char *path);
/* Calls fn(ctx, absolute path, kind) for every object below `path`, in name order, a group before its contents; stops at a
 * non-zero return, which it returns; -1 when the file is damaged or memory is short. fn must return (no jump over HDF5).
 * A group linked into itself is entered once; groups deeper than 32 are not entered. */
int ph_reader_walk(ph_reader *r, const char *path, int (*fn)(void *ctx, const char *path, ph_item kind), void *ctx);
/* Reading errors: PH_E_NOTFOUND, PH_E_FORMAT (damaged), PH_E_DTYPE (unreadable element type, or text for a tensor and the
 * other way round), PH_E_SHAPE (rank above 4), PH_E_NOMEM. Float16 becomes f32; integers become u8 (8 bits unsigned), i32
 * (up to 32 bits signed, 16 bits unsigned) or i64 (all others; an unsigned 64-bit value above its range is PH_E_DTYPE). */
ph_status ph_reader_tensor(ph_reader *r, const char *path, ph_tensor **out, ph_err *err) PH_MUST_CHECK;
/* *text owned by the caller (ph_mem_free), NUL-terminated, *n without the NUL. */
ph_status ph_reader_text(ph_reader *r, const char *path, char **text, size_t *n, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_f64(ph_reader *r, const char *path, const char *name, double *v, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_i64(ph_reader *r, const char *path, const char *name, int64_t *v, ph_err *err) PH_MUST_CHECK;
ph_status ph_reader_attr_text(ph_reader *r, const char *path, const char *name, char **v, ph_err *err) PH_MUST_CHECK;
bool ph_reader_has_attr(ph_reader *r, const char *path, const char *name);
/* Calls fn for each attribute name of an object, in name order, without the `encoding` of long texts; returns as ph_reader_walk. */
int ph_reader_attrs(ph_reader *r, const char *path, int (*fn)(void *ctx, const char *name), void *ctx);

#endif
