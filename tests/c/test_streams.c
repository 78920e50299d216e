/* test_streams.c - what streams compute: every combination of their properties, random blocks, against node-by-node evaluation;
 * gradients by central differences; windows of kept states. */
#include "random_model.h"
#include "slow_model.h"

static void check_model(const char *text, const ph_plan_options *o, uint64_t seed) {
  ph_ir *ir = sm_ir(text);
  ph_plan *p = sm_plan(text, o);
  ph_plan_init(p, seed);
  sm_set s;
  sm_set_of(&s, ir);
  sm_check_forward(p, text, &s);
  sm_check_gradient(p, text, &s);
  sm_set_drop(&s);
  ph_plan_free(p);
  ph_ir_free(ir);
}

static void random_models(const ph_plan_options *o, uint64_t seeds) {
  for (int i = 0; i < RM_STREAMS; i++) {
    rm_stream k = rm_stream_at(i);
    for (uint64_t seed = 0; seed < seeds; seed++) {
      rm m;
      rm_model(&m, seed, &k);
      check_model(m.text, o, seed);
    }
  }
}

static void test_random(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 4}, 40);
  random_models(&(ph_plan_options){.batch = 64, .threads = 2}, 40);
}

static void test_random_windows(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 8, .tape_bytes = 1}, 12);
  random_models(&(ph_plan_options){.batch = 8, .tape_bytes = 4096}, 12);
}

static void test_random_probed(void **state) {
  (void)state;
  random_models(&(ph_plan_options){.batch = 64, .probe = true}, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_random), PH_TEST(test_random_windows), PH_TEST(test_random_probed)};
  return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
