/* file.h - files that are either wholly there or not there: write aside, fsync, rename, fsync the folder; append with
 * fsync; advisory locks that a killed process releases by itself; SHA-256.
 *
 * Every failure is a status with the path and the system's reason (full disk, read-only, no such folder). */
#ifndef PH_STORE_FILE_H
#define PH_STORE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Writes `path`.tmp-<pid>, fsyncs, renames over `path`, fsyncs the folder. On failure nothing is left behind and an older file stays. */
ph_status ph_file_write(const char *path, const void *bytes, size_t n, ph_err *err) PH_MUST_CHECK;
/* Appends n bytes in one write and fsyncs. A short write is taken back (ftruncate). */
ph_status ph_file_append(const char *path, const void *bytes, size_t n, ph_err *err) PH_MUST_CHECK;
/* The whole file; *bytes owned by the caller (ph_mem_free), a NUL after the end. limit 0 = none, else PH_E_LIMIT above it. */
ph_status ph_file_read(const char *path, size_t limit, char **bytes, size_t *n, ph_err *err) PH_MUST_CHECK;
/* mkdir -p. */
ph_status ph_file_mkdir(const char *path, ph_err *err) PH_MUST_CHECK;

typedef struct ph_lock ph_lock;
/* Exclusive advisory lock (flock) on `path`, made if missing. PH_E_LOCKED when another process holds it (its pid in the text). */
ph_status ph_lock_take(ph_lock **out, const char *path, ph_err *err) PH_MUST_CHECK;
void ph_lock_release(ph_lock *lock);

/* Lower-case hexadecimal SHA-256 (OpenSSL libcrypto). */
void ph_sha256(const void *bytes, size_t n, char hex[65]);
ph_status ph_sha256_file(const char *path, char hex[65], ph_err *err) PH_MUST_CHECK;

/* Tests: the n-th write or fsync from now fails with ENOSPC (0 switches off). */
void ph_file_fail_at(int64_t n);

#endif
