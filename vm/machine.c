/* machine.c - native.machine(): what a result file says about where it was computed. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host.h"
#include "kernels/kern.h"
#include "os_box.h"
#include "phrun_commit.h"

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* The value of the first line "name : value" of /proc/cpuinfo with one of two names; "" if there is none. */
static void cpuinfo(const char *name, const char *other, char *out, size_t size) {
  FILE *f = fopen("/proc/cpuinfo", "re");
  char line[8192];
  out[0] = 0;
  while (f && !out[0] && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (!colon || (strncmp(line, name, strlen(name)) && strncmp(line, other, strlen(other)))) {
      continue;
    }
    colon += 1 + (colon[1] == ' ');
    colon[strcspn(colon, "\n")] = 0;
    snprintf(out, size, "%s", colon);
  }
  if (f) {
    fclose(f);
  }
}

/* The CPU features that matter to kernels, in a fixed order. */
static void features(char *out, size_t size) {
  static const char *const known[] = {"sse2",     "avx",      "fma",         "avx2",        "avx512f",  "avx512bw",
                                      "avx512dq", "avx512vl", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                                      "asimd",    "asimdhp",  "bf16",        "sve"};
  char all[8192];
  char padded[8200];
  char word[32];
  cpuinfo("flags", "Features", all, sizeof all);
  snprintf(padded, sizeof padded, " %s ", all);
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    snprintf(word, sizeof word, " %s ", known[i]);
    if (strstr(padded, word) && used + 32 < size) {
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", known[i]);
    }
  }
}

int l_machine(lua_State *L) {
  char text[1024];
  struct utsname u;
  uname(&u);
  lua_createtable(L, 0, 12);
  cpuinfo("model name", "CPU part", text, sizeof text);
  set_string(L, "cpu", text[0] ? text : u.machine);
  features(text, sizeof text);
  set_string(L, "features", text);
  lua_pushinteger(L, sysconf(_SC_NPROCESSORS_ONLN));
  lua_setfield(L, -2, "cores");
  lua_pushinteger(L, PH_ARITHMETIC);
  lua_setfield(L, -2, "arithmetic");
  set_string(L, "kernels_f32", ph_kern_get(PH_F32)->name);
  set_string(L, "kernels_f64", ph_kern_get(PH_F64)->name);
  lua_pushinteger(L, (lua_Integer)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  lua_setfield(L, -2, "memory");
  snprintf(text, sizeof text, "%s %s %s", u.sysname, u.release, u.machine);
  set_string(L, "os", text);
#ifdef __clang__
  set_string(L, "compiler", __VERSION__);
#else
  set_string(L, "compiler", "GCC " __VERSION__);
#endif
  set_string(L, "version", PHRUN_VERSION);
  set_string(L, "commit", PHRUN_COMMIT[0] ? PHRUN_COMMIT : "unknown");
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "ph.native");
  lua_getfield(L, -1, "la_info");
  lua_call(L, 0, 1);
  lua_setfield(L, -4, "openblas");
  lua_getfield(L, -1, "hdf5_version");
  lua_setfield(L, -4, "hdf5");
  lua_pop(L, 2);
  return 1;
}
