/* test_streams.c - what streams compute: every combination of their properties, random blocks, against node-by-node evaluation;
 * gradients by central differences; windows of kept states. */
#include "engine/compile/program.h"
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

/* Every row of the table is part of some model, and what it computes reaches a result. */
static void test_random_meets_every_op(void **state) {
  (void)state;
  int met[256] = {0};
  rm_stream k = rm_stream_at(0);
  for (uint64_t seed = 0; seed < 300; seed++) {
    rm m;
    ph_graph g;
    ph_err err;
    rm_model(&m, seed, &k);
    ph_ir *ir = sm_ir(m.text);
    for (int s = 0; s < ir->nsegments; s++) {
      ph_ok(ph_graph_build(&g, &ir->segment[s], 4, false, &err));
      for (int i = 0; i < g.n; i++) {
        met[g.node[i].op && g.node[i].live ? g.node[i].op - ph_op_at(0) : PH_COUNT(met) - 1]++;
      }
      ph_graph_fini(&g);
    }
    ph_ir_free(ir);
  }
  for (int i = 0; i < ph_op_count(); i++) {
    const ph_op *op = ph_op_at(i);
    if (!met[i] && op->role != PH_ROLE_INPUT &&
        op->role != PH_ROLE_SUB) { /* no input here; a difference becomes a sum */
      fail_msg("no random model has %s in what it computes", op->name);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {PH_TEST(test_random), PH_TEST(test_random_windows), PH_TEST(test_random_probed),
                                     PH_TEST(test_random_meets_every_op)};
  return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
