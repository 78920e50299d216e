/* lock.c - one program at a time on a directory: flock on a file whose text is the pid of the holder. See file.h.
 *
 * flock belongs to the open file description, so it goes away with its last holder, however that one ended, and a stale
 * file means nothing. It is never deleted: two programs could then hold locks on two files of one name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/sys.h"

struct ph_lock {
  int fd;
  pid_t owner; /* the process that took it; a forked child must not unlock for its parent */
};

static ph_status say_locked(int fd, const char *path, ph_err *err) {
  char text[32] = "";
  ssize_t n = pread(fd, text, sizeof text - 1, 0);
  long pid = n > 0 ? strtol(text, NULL, 10) : 0;
  if (pid > 0) {
    return ph_err_set(err, PH_E_LOCKED, "%s: in use by process %ld", path, pid);
  }
  return ph_err_set(err, PH_E_LOCKED, "%s: in use by another process", path);
}

/* The pid is for people; a full disk must not keep anyone from locking, so failures here do not count. */
static void write_pid(int fd) {
  char text[32];
  int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n) {
    (void)!ftruncate(fd, 0);
  }
}

ph_status ph_lock_take(ph_lock **out, const char *path, ph_err *err) {
  ph_lock *lock = ph_mem_new(1, sizeof *lock);
  if (!lock) {
    return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
  }
  ph_status status = PH_OK;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) {
    status = ph_sys_fail(err, path, "lock", errno);
  } else {
    int rc;
    do {
      rc = flock(fd, LOCK_EX | LOCK_NB);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
      status = errno == EWOULDBLOCK ? say_locked(fd, path, err) : ph_sys_fail(err, path, "lock", errno);
    }
  }
  if (status != PH_OK) {
    if (fd >= 0) {
      close(fd);
    }
    ph_mem_free(lock);
    return status;
  }
  write_pid(fd);
  lock->fd = fd;
  lock->owner = getpid();
  *out = lock;
  return PH_OK;
}

void ph_lock_release(ph_lock *lock) {
  if (!lock) {
    return;
  }
  if (lock->owner == getpid()) {
    (void)!ftruncate(lock->fd, 0);
    (void)flock(lock->fd, LOCK_UN); /* forked children may still hold the descriptor */
  }
  close(lock->fd);
  ph_mem_free(lock);
}
