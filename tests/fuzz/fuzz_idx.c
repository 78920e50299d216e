/* fuzz_idx.c - any bytes as an IDX file, plain or gzip: no crash, and what is read has the size its header says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20 };

static void check(bool holds, const char *what) {
  if (holds) {
    return;
  }
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ph_mem_stats before = ph_mem_now();
  int fd = memfd_create("idx", 0);
  check(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ph_err err = {.code = PH_OK};
  ph_tensor *t = NULL;
  ph_status st = ph_idx_read(path, LIMIT, &t, &err);
  if (st) {
    check(!t && err.code == st && err.text[0], "a refusal has a code and a text, and no result");
  } else {
    check(t->dtype == PH_U8 && ph_tensor_count(t) <= LIMIT, "bytes, within the limit");
  }
  ph_tensor_free(t);
  close(fd);
  check(ph_mem_now().bytes == before.bytes, "nothing leaks");
  return 0;
}
