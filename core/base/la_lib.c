/* la_lib.c - the room, the environment and the order in which the libraries are loaded. */
#include "base/la_lib.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/la.h"

static ph_la_lib lib;
static bool loaded;

const ph_la_lib *ph_la_lib_get(void) {
  assert(loaded);
  return &lib;
}

enum { LIBRARIES_MIB = 64, WORK_MIB = 128 };

/* OpenBLAS takes a work space when it is loaded or when it is used first, some releases at both times. */
static ph_status check_room(int mib, ph_err *err) {
  size_t size = (size_t)mib << 20;
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || munmap(p, size)) {
    return ph_err_set(err, PH_E_NOMEM, "out of memory: BLAS needs %d MiB of address space (ulimit -v)", mib);
  }
  return PH_OK;
}

/* OpenBLAS comes first and for all: LAPACKE then finds the LAPACK that is inside it, not one of another library. */
static bool load_both(void) {
  void *blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
  void *lapacke = blas ? dlopen("liblapacke.so.3", RTLD_NOW) : NULL;
  bool found = lapacke != NULL;
#define X(name) found = found && (lib.name = dlsym(blas, #name)) != NULL;
  PH_LA_BLAS_CALLS(X)
#undef X
#define X(name) found = found && (lib.name = dlsym(lapacke, #name)) != NULL;
  PH_LA_LAPACKE_CALLS(X)
#undef X
  return found;
}

/* While they are loaded, the libraries see an environment of two lines (static, for they may keep what they read). */
static bool load_alone(void) {
  static char threads[] = "OPENBLAS_NUM_THREADS=1";
  static char core[64];
  static char *two_lines[] = {threads, NULL, NULL};
  const char *chosen = getenv("OPENBLAS_CORETYPE");
  const char *name = chosen ? chosen : ph_la_wanted_core();
  snprintf(core, sizeof core, "OPENBLAS_CORETYPE=%s", name);
  two_lines[1] = name[0] ? core : NULL;
  char **whole = environ;
  environ = two_lines;
  bool found = load_both();
  environ = whole;
  return found;
}

ph_status ph_la_lib_load(ph_err *err) {
  if (loaded) {
    return PH_OK;
  }
  ph_status st = check_room(LIBRARIES_MIB + WORK_MIB, err);
  if (!st && !load_alone()) {
    st = ph_err_set(err, PH_E_NOTFOUND, "cannot load BLAS: %s", dlerror());
  }
  if (!st) {
    st = check_room(WORK_MIB, err);
  }
  loaded = !st;
  return st;
}
