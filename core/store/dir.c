/* dir.c - directories and names: mkdir -p, remove, rename, stat, sorted listing. See file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/sys.h"

static ph_status make_one(const char *path, ph_err *err) {
  struct stat st;
  if (mkdir(path, 0777) == 0) {
    return ph_sys_sync_dir(path, err);
  }
  int code = errno;
  if (stat(path, &st) == 0) { /* also where mkdir says EROFS or EACCES for a directory that is there */
    if (S_ISDIR(st.st_mode)) {
      return PH_OK;
    }
    return ph_err_set(err, PH_E_IO, "%s: cannot create the directory: a file of that name is in the way", path);
  }
  return ph_sys_fail(err, path, "create the directory", code);
}

ph_status ph_file_mkdir(const char *path, ph_err *err) {
  char *p = ph_mem_strdup(path);
  if (!p) {
    return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
  }
  ph_status status = PH_OK;
  for (char *s = p + 1; *p && *s && status == PH_OK; s++) {
    if (*s != '/' || s[-1] == '/') {
      continue;
    }
    *s = '\0';
    status = make_one(p, err);
    *s = '/';
  }
  if (status == PH_OK) {
    status = make_one(p, err);
  }
  ph_mem_free(p);
  return status;
}

ph_status ph_file_remove(const char *path, ph_err *err) {
  if (remove(path) != 0) {
    return ph_sys_fail(err, path, "remove", errno);
  }
  return ph_sys_sync_dir(path, err);
}

ph_status ph_file_rename(const char *from, const char *to, ph_err *err) {
  if (rename(from, to) != 0) {
    ph_status status = ph_sys_fail(err, to, "rename to this name", errno);
    return ph_err_prefix(err, status, "%s", from);
  }
  ph_status status = ph_sys_sync_dir(to, err);
  return status == PH_OK ? ph_sys_sync_dir(from, err) : status;
}

ph_status ph_file_stat(const char *path, ph_file_info *out, ph_err *err) {
  struct stat st;
  if (stat(path, &st) != 0) {
    int code = errno == ENOTDIR ? ENOENT : errno; /* "a/b" where a is a file is not there either */
    return ph_sys_fail(err, path, "look at it", code);
  }
  out->is_dir = S_ISDIR(st.st_mode);
  out->is_file = S_ISREG(st.st_mode);
  out->size = (int64_t)st.st_size;
  out->mtime = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
  return PH_OK;
}

typedef struct name_list {
  char **name; /* each a block of ph_mem_new */
  size_t n, room, bytes;
} name_list;

static void list_free(name_list *l) {
  for (size_t i = 0; i < l->n; i++) {
    ph_mem_free(l->name[i]);
  }
  ph_mem_free(l->name);
}

static bool list_add(name_list *l, const char *name) {
  if (l->n == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    char **more = ph_mem_grow(l->name, l->n * sizeof *more, room, sizeof *more);
    if (!more) {
      return false;
    }
    l->name = more;
    l->room = room;
  }
  char *copy = ph_mem_strdup(name);
  if (!copy) {
    return false;
  }
  l->name[l->n++] = copy;
  l->bytes += strlen(copy) + 1;
  return true;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static ph_status list_read(DIR *dir, const char *path, name_list *l, ph_err *err) {
  for (;;) {
    errno = 0;
    struct dirent *e = readdir(dir);
    if (!e) {
      return errno ? ph_sys_fail(err, path, "list the directory", errno) : PH_OK;
    }
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
      continue;
    }
    if (!list_add(l, e->d_name)) {
      return ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
    }
  }
}

static char *list_join(name_list *l) {
  if (l->n > 1) {
    qsort(l->name, l->n, sizeof *l->name, by_bytes);
  }
  char *block = ph_mem_new(l->bytes + 1, 1);
  char *p = block;
  for (size_t i = 0; block && i < l->n; i++) {
    p = stpcpy(p, l->name[i]) + 1;
  }
  return block;
}

ph_status ph_file_list(const char *path, char **names, size_t *count, ph_err *err) {
  name_list l = {0};
  DIR *dir = opendir(path);
  if (!dir) {
    return ph_sys_fail(err, path, "list the directory", errno);
  }
  ph_status status = list_read(dir, path, &l, err);
  closedir(dir);
  if (status == PH_OK) {
    char *block = list_join(&l);
    if (block) {
      *names = block;
      *count = l.n;
    } else {
      status = ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
    }
  }
  list_free(&l);
  return status;
}
