/* sys.h - what the files of this directory share: system errors as one line, and writes and fsyncs that a test can make fail. */
#ifndef PH_STORE_SYS_H
#define PH_STORE_SYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* "path: cannot <verb>: <reason of errno>"; PH_E_NOTFOUND for a missing file, PH_E_NOMEM for short memory, else PH_E_IO. */
ph_status ph_sys_fail(ph_err *err, const char *path, const char *verb, int code);

/* All n bytes or false with errno set; both retry when a signal interrupts them. Count for ph_file_fail_at. */
bool ph_sys_write(int fd, const void *bytes, size_t n);
bool ph_sys_fsync(int fd);

/* A descriptor of a regular file open for reading, -1 and `err` filled otherwise. *size: its length now. */
int ph_sys_open_regular(const char *path, size_t *size, ph_err *err);

/* fsync of the directory that holds `path`, so that a new name survives a power cut. */
ph_status ph_sys_sync_dir(const char *path, ph_err *err) PH_MUST_CHECK;

#endif
