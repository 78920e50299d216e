/* Which table is chosen, and that every table is complete. */
#include "kern_trial.h"

#include <sys/wait.h>
#include <unistd.h>

static void tables_are_complete(void **state) {
  (void)state;
  static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(names); i++) {
      const ph_kern *k = ph_kern_find(type, names[i]);
      if (!k) {
        continue;
      }
      assert_string_equal(names[i], k->name);
      assert_int_equal(type, k->dtype);
      assert_true(k->lanes >= 2);
      void *const *fn = (void *const *)&k->gemm;
      void *const *f64 = (void *const *)&k->normal; /* rows from here on are of float64 alone */
      void *const *end = (void *const *)(k + 1);
      for (; fn < end; fn++) {
        assert_true((*fn == NULL) == (type == PH_F32 && fn >= f64));
      }
    }
    assert_non_null(ph_kern_find(PH_F32, "portable"));
    assert_null(ph_kern_find(PH_F32, "sse9"));
    assert_null(ph_kern_find(PH_F64, ""));
  }
}

/* The choice is made once per process, so each is tried in a child; 0 = it got the table named `want`. */
static int chosen_in_child(const char *value, const char *want) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    if (!freopen("/dev/null", "w", stderr)) {
      _exit(9);
    }
    if (value) {
      setenv("PHRUN_KERNELS", value, 1);
    } else {
      unsetenv("PHRUN_KERNELS");
    }
    const int same = strcmp(ph_kern_get(PH_F32)->name, want) == 0 && strcmp(ph_kern_get(PH_F64)->name, want) == 0;
    _exit(same ? 0 : 1);
  }
  int status = -1;
  assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void environment_chooses(void **state) {
  (void)state;
  static const char *const best_first[] = {"avx512", "avx2", "neon", "portable"};
  const char *best = NULL;
  for (int i = PH_COUNT(best_first) - 1; i >= 0; i--) {
    if (!ph_kern_find(PH_F32, best_first[i])) {
      continue;
    }
    best = best_first[i];
    assert_int_equal(0, chosen_in_child(best, best));
  }
  assert_int_equal(0, chosen_in_child(NULL, best));
  assert_int_equal(0, chosen_in_child("", best));
  assert_int_equal(0, chosen_in_child("no such kernels", best));
}

static void peak_is_a_rate(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const double rate = ph_kern_peak(type, 0.01);
    assert_true(rate > 0.05 && rate < 5000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(environment_chooses), PH_TEST(tables_are_complete),
                                     PH_TEST(peak_is_a_rate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
