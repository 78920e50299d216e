/* step.c - training steps of one model, timed in slices that another program asks for.
 *
 *   bench_step IR FEATURES BATCH THREADS     on each line of standard input, "SECONDS": takes steps for so long, prints "ms per step"
 *
 * Two of these (two builds, or one build beside a peer) are asked turn about by bench/pairs.py: a machine whose speed
 * changes from second to second changes it for both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "engine/run/plan.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_text(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = malloc(1 << 26);
  *n = f && text ? fread(text, 1, 1 << 26, f) : 0;
  if (f) {
    fclose(f);
  }
  return text;
}

static void fail(const char *what) {
  fprintf(stderr, "bench_step: %s\n", what);
  exit(1);
}

/* Inputs from a normal distribution, labels 0 to 3. */
static void make_data(int64_t n, int64_t features, ph_tensor **x, int32_t *label, int32_t *idx) {
  ph_err err;
  if (ph_tensor_new(x, PH_F32, 2, (int64_t[]){n, features}, &err)) {
    fail(err.text);
  }
  ph_rng_fill_normal(ph_rng_of(0, "bench/x"), 0, 1, *x);
  for (int64_t i = 0; i < n; i++) {
    label[i] = (int32_t)(i % 4);
    idx[i] = (int32_t)i;
  }
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fail("IR FEATURES BATCH THREADS");
  }
  size_t length = 0;
  char *text = read_text(argv[1], &length);
  int64_t features = atoll(argv[2]);
  int64_t batch = atoll(argv[3]);
  ph_plan_options o = {.batch = batch, .threads = atoi(argv[4])};
  ph_optim adam = {.kind = PH_OPTIM_ADAM, .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  ph_plan *plan = NULL;
  ph_tensor *x = NULL;
  ph_err err;
  if (ph_plan_new(&plan, text, length, &o, &err)) {
    fail(err.text);
  }
  int32_t *label = calloc((size_t)batch, sizeof *label);
  int32_t *idx = calloc((size_t)batch, sizeof *idx);
  make_data(batch, features, &x, label, idx);
  ph_data data = {.x = ph_source_rows(x), .label = label};
  ph_result res;
  double seconds = 0;
  while (scanf("%lf", &seconds) == 1) {
    double start = now();
    int steps = 0;
    do {
      if (ph_plan_step(plan, &data, idx, batch, &adam, &res, &err)) {
        fail(err.text);
      }
      steps++;
    } while (now() - start < seconds);
    printf("%.6f\n", 1e3 * (now() - start) / steps);
    fflush(stdout);
  }
  ph_plan_free(plan);
  ph_tensor_free(x);
  free(label);
  free(idx);
  free(text);
  return 0;
}
