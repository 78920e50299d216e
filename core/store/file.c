/* file.c - whole files: written aside and renamed, appended with rollback, read at once. See file.h. */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/sys.h"

enum { NAME_EXTRA = 32 };

static ph_status no_memory(ph_err *err, const char *path) {
  return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
}

/* A name beside `path` on the same file system, so that rename is atomic; the pid keeps two programs apart. */
static char *aside_name(const char *path) {
  size_t n = strlen(path) + NAME_EXTRA;
  char *name = ph_mem_new(n, 1);
  if (name) {
    snprintf(name, n, "%s.tmp-%ld", path, (long)getpid());
  }
  return name;
}

static ph_status write_aside(const char *aside, const char *path, const void *bytes, size_t n, ph_err *err) {
  ph_status status = PH_OK;
  int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) {
    return ph_sys_fail(err, path, "write", errno);
  }
  if (!ph_sys_write(fd, bytes, n) || !ph_sys_fsync(fd)) {
    status = ph_sys_fail(err, path, "write", errno);
  }
  if (close(fd) != 0 && status == PH_OK) {
    status = ph_sys_fail(err, path, "write", errno); /* NFS reports a full disk here */
  }
  return status;
}

ph_status ph_file_write(const char *path, const void *bytes, size_t n, ph_err *err) {
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    return ph_err_set(err, PH_E_IO, "%s: cannot write: it is %s", path,
                      S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
  }
  char *aside = aside_name(path);
  if (!aside) {
    return no_memory(err, path);
  }
  ph_status status = write_aside(aside, path, bytes, n, err);
  if (status == PH_OK && rename(aside, path) != 0) {
    status = ph_sys_fail(err, path, "write", errno);
  }
  if (status != PH_OK) {
    (void)unlink(aside);
  }
  ph_mem_free(aside);
  return status == PH_OK ? ph_sys_sync_dir(path, err) : status;
}

/* Writes at the end of fd and syncs. A failure leaves the file as long as before (a device cannot be cut: ignored). */
static ph_status append_fd(int fd, const char *path, const void *bytes, size_t n, ph_err *err) {
  struct stat st;
  if (fstat(fd, &st) != 0) {
    return ph_sys_fail(err, path, "append", errno);
  }
  if (ph_sys_write(fd, bytes, n) && ph_sys_fsync(fd)) {
    return st.st_size == 0 ? ph_sys_sync_dir(path, err) : PH_OK;
  }
  int code = errno;
  if (S_ISREG(st.st_mode) && ftruncate(fd, st.st_size) != 0) {
    return ph_err_set(err, PH_E_IO, "%s: cannot append (%s) and cannot take back a half-written line", path,
                      strerror(code));
  }
  return ph_sys_fail(err, path, "append", code);
}

static int open_append(const char *path, ph_err *err) {
  int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) {
    (void)ph_sys_fail(err, path, "append", errno);
  }
  return fd;
}

ph_status ph_file_append(const char *path, const void *bytes, size_t n, ph_err *err) {
  ph_err local;
  if (!err) {
    err = &local;
  }
  int fd = open_append(path, err);
  if (fd < 0) {
    return err->code;
  }
  ph_status status = append_fd(fd, path, bytes, n, err);
  close(fd);
  return status;
}

static bool ends_torn(int fd) {
  char last;
  off_t end = lseek(fd, 0, SEEK_END);
  return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

ph_status ph_file_append_line(const char *path, const char *text, size_t n, ph_err *err) {
  ph_err local;
  if (!err) {
    err = &local;
  }
  if (memchr(text, '\n', n)) {
    return ph_err_set(err, PH_E_ARG, "%s: a line to append holds a newline", path);
  }
  char *line = ph_mem_new(n + 2, 1);
  if (!line) {
    return no_memory(err, path);
  }
  int fd = open_append(path, err);
  ph_status status = PH_OK;
  if (fd < 0) {
    status = err->code;
  } else {
    bool torn = ends_torn(fd);
    line[0] = '\n';
    memcpy(line + 1, text, n);
    line[n + 1] = '\n';
    status = append_fd(fd, path, torn ? line : line + 1, n + (torn ? 2 : 1), err);
    close(fd);
  }
  ph_mem_free(line);
  return status;
}

typedef struct buffer {
  char *bytes;
  size_t n, room; /* bytes in use; bytes allocated, one of them kept for the final NUL */
} buffer;

/* Reads fd to its end. The size from stat is only a first guess: files in /proc have none, others may grow. */
static ph_status read_fd(int fd, const char *path, size_t limit, buffer *b, ph_err *err) {
  for (;;) {
    if (b->n + 1 >= b->room) {
      char *more = ph_mem_grow(b->bytes, b->n, b->room * 2, 1);
      if (!more) {
        return no_memory(err, path);
      }
      b->bytes = more;
      b->room *= 2;
    }
    ssize_t k = read(fd, b->bytes + b->n, b->room - b->n - 1);
    if (k < 0 && errno == EINTR) {
      continue;
    }
    if (k < 0) {
      return ph_sys_fail(err, path, "read", errno);
    }
    if (k == 0) {
      break;
    }
    b->n += (size_t)k;
    if (limit > 0 && b->n > limit) {
      return ph_err_set(err, PH_E_LIMIT, "%s: longer than the limit of %zu bytes", path, limit);
    }
  }
  b->bytes[b->n] = '\0';
  return PH_OK;
}

ph_status ph_file_read(const char *path, size_t limit, char **bytes, size_t *n, ph_err *err) {
  ph_err local;
  if (!err) {
    err = &local;
  }
  size_t size;
  buffer b = {0};
  int fd = ph_sys_open_regular(path, &size, err);
  if (fd < 0) {
    return err->code;
  }
  ph_status status = PH_OK;
  if (limit > 0 && size > limit) {
    status = ph_err_set(err, PH_E_LIMIT, "%s: %zu bytes, more than the limit of %zu", path, size, limit);
  }
  if (status == PH_OK) {
    b.room = size + 2; /* one for the NUL, one so that the read that finds the end needs no growth */
    b.bytes = ph_mem_new(b.room, 1);
    status = b.bytes ? read_fd(fd, path, limit, &b, err) : no_memory(err, path);
  }
  close(fd);
  if (status != PH_OK) {
    ph_mem_free(b.bytes);
    return status;
  }
  *bytes = b.bytes;
  *n = b.n;
  return PH_OK;
}
