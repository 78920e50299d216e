#include "ph_test.h"

#include <stdatomic.h>
#include <time.h>

#include "base/pool.h"

enum { MAX_TASKS = 1000, THREADS = 4 };

typedef struct book {
  int times[MAX_TASKS];       /* written by the one thread that has the task */
  atomic_int inside[THREADS]; /* tasks running under this worker number right now */
  atomic_int worst, out_of_range;
} book;

static void count_task(void *ctx, int task, int worker) {
  book *b = ctx;
  if (worker < 0 || worker >= THREADS) {
    atomic_fetch_add(&b->out_of_range, 1);
    return;
  }
  int now = atomic_fetch_add(&b->inside[worker], 1) + 1;
  if (now > atomic_load(&b->worst)) {
    atomic_store(&b->worst, now);
  }
  b->times[task]++;
  atomic_fetch_sub(&b->inside[worker], 1);
}

static void every_task_runs_once_and_workers_do_not_overlap(void **state) {
  (void)state;
  static const int counts[] = {0, 1, 2, 3, 7, 100, MAX_TASKS};
  for (int threads = 1; threads <= THREADS; threads++) {
    ph_pool *pool = NULL;
    ph_ok(ph_pool_new(&pool, threads, NULL));
    assert_int_equal(threads, ph_pool_threads(pool));
    for (int c = 0; c < PH_COUNT(counts); c++) {
      book b = {0};
      ph_pool_run(pool, counts[c], count_task, &b);
      for (int k = 0; k < MAX_TASKS; k++) {
        assert_int_equal(k < counts[c], b.times[k]);
      }
      assert_int_equal(counts[c] > 0, b.worst);
      assert_int_equal(0, b.out_of_range);
    }
    ph_pool_free(pool);
  }
}

/* Many short rounds right after each other: a worker that is late for one must neither lose nor steal tasks of the next. */
static void rounds_follow_each_other(void **state) {
  (void)state;
  ph_pool *pool = NULL;
  ph_ok(ph_pool_new(&pool, THREADS, NULL));
  book b = {0};
  for (int round = 1; round <= 20000; round++) {
    int n = 2 + round % 5;
    ph_pool_run(pool, n, count_task, &b);
    if (round % 5 == 0) {
      assert_int_equal(round, b.times[0]);
    }
  }
  assert_int_equal(4000, b.times[5]);
  assert_int_equal(0, b.times[6]);
  ph_pool_free(pool);
}

static void pools_that_never_run_end(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) {
    ph_pool *pool = NULL;
    ph_ok(ph_pool_new(&pool, 1 + i % THREADS, NULL));
    ph_pool_free(pool);
  }
  ph_pool_free(NULL);
}

static void sleep_ms(int ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static double seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The quietest of ten windows: other libraries of the process may have threads that spin for a while after the start. */
static void idle_workers_sleep(void **state) {
  (void)state;
  ph_pool *pool = NULL;
  book b = {0};
  double least = 1;
  ph_ok(ph_pool_new(&pool, 2, NULL));
  for (int window = 1; window <= 10 && least > 0.01; window++) {
    ph_pool_run(pool, 8, count_task, &b);
    assert_int_equal(window, b.times[7]);
    double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ms(100);
    least = fmin(least, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before);
  }
  ph_pool_free(pool);
  assert_true(least < 0.01); /* one spinning worker uses 0.1 */
}

static void nap(void *ctx, int task, int worker) {
  (void)task;
  (void)worker;
  sleep_ms(*(int *)ctx);
}

/* Naps need no processor, so this holds on a loaded machine as well. */
static void tasks_run_side_by_side(void **state) {
  (void)state;
  ph_pool *pool = NULL;
  int ms = 50;
  ph_ok(ph_pool_new(&pool, THREADS, NULL));
  double start = seconds_of(CLOCK_MONOTONIC);
  ph_pool_run(pool, THREADS, nap, &ms);
  double took = seconds_of(CLOCK_MONOTONIC) - start;
  assert_true(took >= 0.049);
  assert_true(took < 0.05 * (THREADS - 1)); /* one after the other: 0.2 */
  ph_pool_free(pool);
}

static void a_round_allocates_nothing(void **state) {
  (void)state;
  ph_pool *pool = NULL;
  book b = {0};
  ph_ok(ph_pool_new(&pool, 2, NULL));
  int64_t calls = ph_mem_now().calls;
  ph_pool_run(pool, 100, count_task, &b);
  assert_int_equal(calls, ph_mem_now().calls);
  ph_pool_free(pool);
}

static void bad_thread_counts_are_refused(void **state) {
  (void)state;
  ph_pool *pool = NULL;
  ph_err err;
  ph_fails(PH_E_ARG, "threads must be at least 1, got 0", ph_pool_new(&pool, 0, &err), err);
  ph_fails(PH_E_ARG, "threads must be at least 1, got -3", ph_pool_new(&pool, -3, &err), err);
  ph_fails(PH_E_LIMIT, "at most", ph_pool_new(&pool, 1 << 30, &err), err);
  assert_null(pool);
}

static ph_status make_pool(void) {
  ph_pool *pool = NULL;
  ph_status st = ph_pool_new(&pool, 3, NULL);
  ph_pool_free(pool);
  return st;
}

static void every_failed_allocation_is_reported(void **state) {
  (void)state;
  ph_each_failed_allocation(make_pool());
}

static void the_interrupt_flag_is_kept(void **state) {
  (void)state;
  assert_int_equal(0, ph_interrupt_get());
  ph_interrupt_set(1);
  assert_int_equal(1, ph_interrupt_get());
  ph_interrupt_set(0);
  assert_int_equal(0, ph_interrupt_get());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(every_task_runs_once_and_workers_do_not_overlap),
      PH_TEST(rounds_follow_each_other),
      PH_TEST(pools_that_never_run_end),
      PH_TEST(idle_workers_sleep),
      PH_TEST(tasks_run_side_by_side),
      PH_TEST(a_round_allocates_nothing),
      PH_TEST(bad_thread_counts_are_refused),
      PH_TEST(every_failed_allocation_is_reported),
      PH_TEST(the_interrupt_flag_is_kept),
  };
  return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
