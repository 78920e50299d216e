/* h5.h - what image.c and reader.c share about the HDF5 library; its handles stay inside the two. */
#ifndef PH_STORE_H5_H
#define PH_STORE_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"
#include "store/store.h"

/* The user block in front of a run file: one line, padded with zeros. */
enum { PH_H5_BLOCK = 512 };
#define PH_H5_MAGIC "phrun run file, HDF5 from byte 512 on, sha256 of it: "

/* Marks a uint8 dataset as text. */
#define PH_H5_ENCODING "encoding"

/* Once per process: no printing, no atexit work, no plugins. */
void ph_h5_start(void);

/* A file name for a memory image: unique, for HDF5 takes equal names for one file, and impossible on disk. */
void ph_h5_name(char buf[64]);

/* After a failed HDF5 call: "what: innermost reason of its error stack". Short memory turns PH_E_INTERNAL into PH_E_NOMEM, but
 * not PH_E_FORMAT: where a file is read, a forged size is the likelier cause. */
ph_status ph_h5_fail(ph_err *err, ph_status code, const char *fmt, ...) PH_PRINTF(3, 4);

/* "/" or "/a/b": absolute, no empty, "." or ".." part, no "/" at the end. */
bool ph_h5_path_ok(const char *path);

/* Handles are int64_t here, as hid_t is: no other header of the core depends on HDF5. */
struct ph_reader {
  int64_t file;
  char *name;    /* for messages */
  uint64_t most; /* bytes that a dataset of this file can have */
  bool sealed;   /* began with our line */
};

/* The object at an absolute path, -1 if there is none or the way leads out of the file; closed by the caller. */
int64_t ph_h5_find(ph_reader *r, const char *path);
ph_item ph_h5_kind(int64_t object);

/* Our element type for an HDF5 one and the type to read it with; false if there is none. */
bool ph_h5_dtype(int64_t type, ph_dtype *dtype, int64_t *mem);

#endif
