/* sys.c - system calls of the store with retry, fault injection and readable errors. */
#include "store/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"

static _Atomic int64_t fail_countdown;

void ph_file_fail_at(int64_t n) { atomic_store(&fail_countdown, n); }

static bool fails_now(void) {
  int64_t left = atomic_load(&fail_countdown);
  if (left == 0) {
    return false;
  }
  return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

ph_status ph_sys_fail(ph_err *err, const char *path, const char *verb, int code) {
  char buf[128];
  ph_status status = code == ENOENT ? PH_E_NOTFOUND : code == ENOMEM ? PH_E_NOMEM : PH_E_IO;
  return ph_err_set(err, status, "%s: cannot %s: %s", path, verb, strerror_r(code, buf, sizeof buf));
}

static bool write_all(int fd, const char *p, size_t n) {
  while (n > 0) {
    ssize_t k = write(fd, p, n);
    if (k < 0 && errno == EINTR) {
      continue;
    }
    if (k < 0) {
      return false;
    }
    if (k == 0) {
      errno = ENOSPC;
      return false;
    }
    p += k;
    n -= (size_t)k;
  }
  return true;
}

bool ph_sys_write(int fd, const void *bytes, size_t n) {
  if (!fails_now()) {
    return write_all(fd, bytes, n);
  }
  if (write_all(fd, bytes, n / 2)) {
    errno = ENOSPC; /* as a disk does that fills up in the middle */
  }
  return false;
}

bool ph_sys_fsync(int fd) {
  if (fails_now()) {
    errno = ENOSPC;
    return false;
  }
  int rc;
  do {
    rc = fsync(fd);
  } while (rc != 0 && errno == EINTR);
  return rc == 0 || errno == EINVAL || errno == EROFS; /* not a thing that can be synced: a pipe, a device */
}

int ph_sys_open_regular(const char *path, size_t *size, ph_err *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not block here */
  if (fd < 0) {
    (void)ph_sys_fail(err, path, "open", errno);
    return -1;
  }
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    *size = (size_t)st.st_size;
    return fd;
  }
  (void)ph_err_set(err, PH_E_IO, "%s: cannot read: %s", path,
                   S_ISDIR(st.st_mode) ? "it is a directory" : "it is not a regular file");
  close(fd);
  return -1;
}

ph_status ph_sys_sync_dir(const char *path, ph_err *err) {
  ph_status status = PH_OK;
  char *copy = ph_mem_strdup(path); /* dirname writes into its argument */
  if (!copy) {
    return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
  }
  const char *dir = dirname(copy);
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || !ph_sys_fsync(fd)) {
    status = ph_sys_fail(err, dir, "sync the directory", errno);
  }
  if (fd >= 0) {
    close(fd);
  }
  ph_mem_free(copy);
  return status;
}
