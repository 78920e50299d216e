/* file.h - files that are either wholly there or not there: write aside, fsync, rename, fsync the directory; append with
 * fsync; advisory locks that a killed process releases by itself; SHA-256.
 *
 * Every failure is a status with the path and the system's reason (full disk, read-only, no such directory). Only regular
 * files are read or replaced, so a pipe never hangs and a device is never overwritten. */
#ifndef PH_STORE_FILE_H
#define PH_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Writes `path`.tmp-<pid>, fsyncs, renames over `path`, fsyncs the directory. On failure nothing is left behind and an older
 * file stays; only when the last step fails (fsync of the directory) is the new file already in place, whole. */
ph_status ph_file_write(const char *path, const void *bytes, size_t n, ph_err *err) PH_MUST_CHECK;
/* Appends n bytes in one write and fsyncs. A short write is taken back (ftruncate). Makes the file when missing. */
ph_status ph_file_append(const char *path, const void *bytes, size_t n, ph_err *err) PH_MUST_CHECK;
/* Appends text[n] and a newline as ph_file_append does. If the file ends in the middle of a line (a writer was killed), the
 * torn line is closed by a newline first, so it stays a line of its own. PH_E_ARG when the text holds a newline. */
ph_status ph_file_append_line(const char *path, const char *text, size_t n, ph_err *err) PH_MUST_CHECK;
/* The whole file; *bytes owned by the caller (ph_mem_free), a NUL after the end. limit 0 = none, else PH_E_LIMIT above it. */
ph_status ph_file_read(const char *path, size_t limit, char **bytes, size_t *n, ph_err *err) PH_MUST_CHECK;

/* mkdir -p. */
ph_status ph_file_mkdir(const char *path, ph_err *err) PH_MUST_CHECK;
/* Removes a file or an empty directory; renames over an existing file. Both fsync the directories concerned. */
ph_status ph_file_remove(const char *path, ph_err *err) PH_MUST_CHECK;
ph_status ph_file_rename(const char *from, const char *to, ph_err *err) PH_MUST_CHECK;

typedef struct ph_file_info {
  bool is_dir, is_file; /* both false: a device, a pipe, a socket */
  int64_t size;         /* bytes */
  double mtime;         /* seconds since 1970 */
} ph_file_info;
ph_status ph_file_stat(const char *path, ph_file_info *out, ph_err *err) PH_MUST_CHECK;

/* The names in a directory without "." and "..", sorted by bytes: one block of NUL-terminated names, one after the other,
 * owned by the caller (ph_mem_free). */
ph_status ph_file_list(const char *path, char **names, size_t *count, ph_err *err) PH_MUST_CHECK;

typedef struct ph_lock ph_lock;
/* Exclusive advisory lock (flock) on `path`, made if missing. PH_E_LOCKED when another process holds it (its pid in the text).
 * A forked child shares the lock: it stays held until the taker releases it or all of them are gone; a child's own
 * ph_lock_release lets go of its copy only. The file stays, empty, after release. */
ph_status ph_lock_take(ph_lock **out, const char *path, ph_err *err) PH_MUST_CHECK;
void ph_lock_release(ph_lock *lock);

/* Lower-case hexadecimal SHA-256 (OpenSSL libcrypto). */
void ph_sha256(const void *bytes, size_t n, char hex[65]);
ph_status ph_sha256_file(const char *path, char hex[65], ph_err *err) PH_MUST_CHECK;

/* Tests: the n-th write or fsync from now fails with ENOSPC, a write after half of its bytes (0 switches off). */
void ph_file_fail_at(int64_t n);

#endif
