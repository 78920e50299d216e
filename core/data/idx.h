/* idx.h - images and labels in the IDX format of MNIST, plain or gzip.
 *
 * Layout (big-endian): 0x00 0x00 type rank, one uint32 per dimension, elements row-major. Only unsigned bytes (type 0x08) are
 * read here. Refused with file, byte offset, expected and found: bad magic or type, rank outside 1..4, a dimension product
 * that overflows or exceeds `limit`, a file shorter or longer than its header says, a broken or truncated gzip stream or
 * CRC, an inflated size above `limit`. Never zero-fills.
 */
#ifndef PH_DATA_IDX_H
#define PH_DATA_IDX_H

#include "base/tensor.h"

/* A u8 tensor of the file's shape. limit: most elements (0, or more than that: 2^31). Holds file and tensor in memory at once.
 * Errors: PH_E_NOTFOUND, PH_E_IO, PH_E_FORMAT, PH_E_LIMIT, PH_E_NOMEM. */
ph_status ph_idx_read(const char *path, int64_t limit, ph_tensor **out, ph_err *err) PH_MUST_CHECK;

/* Images (n,h,w) and labels (n) that belong together: equal counts, labels below `classes` (0 = any label).
 * Errors: as above, PH_E_SHAPE when ranks or counts differ; outputs are untouched then. */
ph_status ph_idx_pair(const char *images, const char *labels, int classes, ph_tensor **x, ph_tensor **y,
                      ph_err *err) PH_MUST_CHECK;

#endif
