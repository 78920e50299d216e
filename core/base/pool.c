/* pool.c - one word deals the tasks of a round, one counter ends it.
 *
 * `deal` holds the number of the round and how many of its tasks nobody has taken yet. Taking a task is one
 * compare-and-swap, and only who has taken one looks at fn, ctx and n: a round ends when all tasks are done, so these stay
 * as they are while anybody may look. A worker that wakes up late finds nothing to take, and nobody waits for it.
 * Waiting, on both sides, spins for about SPIN_NS and then sleeps: one region of a training step follows the other within
 * microseconds, and an idle program must not burn the processor.
 */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/mem.h"

enum { MAX_THREADS = 1024, SPIN_NS = 40000, SPIN_BATCH = 64 };

typedef struct worker {
  pthread_t thread;
  ph_pool *pool;
  int index;
} worker;

struct ph_pool {
  int threads;
  int started; /* worker threads that run: threads - 1 unless new failed */
  worker *workers;
  bool spin; /* false where threads outnumber processors: spinning would keep the others from working */

  ph_pool_fn *fn;
  void *ctx;
  int n;
  bool running;

  _Alignas(64) _Atomic uint64_t deal; /* round << 32 | tasks left to take */
  _Alignas(64) _Atomic int done;
  atomic_bool stop;

  _Alignas(64) pthread_mutex_t mutex;
  pthread_cond_t begin, end;
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static bool has_work(ph_pool *p) {
  return (uint32_t)atomic_load_explicit(&p->deal, memory_order_relaxed) != 0 || atomic_load(&p->stop);
}

static bool is_done(ph_pool *p) { return atomic_load_explicit(&p->done, memory_order_acquire) == p->n; }

/* Waits for a condition, first spinning, then asleep. The thread that makes it true then calls `wake`. */
static void wait_for(ph_pool *p, bool (*cond)(ph_pool *), pthread_cond_t *signal) {
  for (int64_t until = p->spin ? now_ns() + SPIN_NS : 0; p->spin && now_ns() < until;) {
    for (int k = 0; k < SPIN_BATCH; k++) {
      if (cond(p)) {
        return;
      }
      pause_cpu();
    }
  }
  pthread_mutex_lock(&p->mutex);
  while (!cond(p)) {
    pthread_cond_wait(signal, &p->mutex);
  }
  pthread_mutex_unlock(&p->mutex);
}

static void wake(ph_pool *p, pthread_cond_t *cond) {
  /* Empty section: a sleeper is either before its last look, and sees the change, or inside pthread_cond_wait. */
  pthread_mutex_lock(&p->mutex);
  pthread_mutex_unlock(&p->mutex);
  pthread_cond_broadcast(cond);
}

/* Acquire: what the caller stored before it dealt the round is visible to whoever takes a task of it. */
static bool take(ph_pool *p, int *task) {
  uint64_t deal = atomic_load_explicit(&p->deal, memory_order_relaxed);
  while ((uint32_t)deal != 0) {
    if (atomic_compare_exchange_weak_explicit(&p->deal, &deal, deal - 1, memory_order_acquire, memory_order_relaxed)) {
      *task = p->n - (int)(uint32_t)deal;
      return true;
    }
  }
  return false;
}

/* Takes tasks until none is left; true if the last one to be done was among them. */
static bool help(ph_pool *p, int index) {
  int task;
  int n = 0;
  int all = 0;
  for (; take(p, &task); n++) {
    all = p->n;
    p->fn(p->ctx, task, index);
  }
  return n > 0 && atomic_fetch_add_explicit(&p->done, n, memory_order_acq_rel) + n == all;
}

static void *work(void *arg) {
  worker *w = arg;
  ph_pool *p = w->pool;
  for (;;) {
    wait_for(p, has_work, &p->begin);
    if (atomic_load(&p->stop)) {
      return NULL;
    }
    if (help(p, w->index)) {
      wake(p, &p->end);
    }
  }
}

void ph_pool_run(ph_pool *p, int n, ph_pool_fn *fn, void *ctx) {
  assert(!p->running);
  p->running = true;
  if (p->started == 0 || n <= 1) {
    for (int task = 0; task < n; task++) {
      fn(ctx, task, 0);
    }
  } else {
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    uint64_t round = (atomic_load_explicit(&p->deal, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&p->deal, round << 32 | (uint32_t)n, memory_order_release);
    wake(p, &p->begin);
    if (!help(p, 0)) {
      wait_for(p, is_done, &p->end);
    }
  }
  p->running = false;
}

/* Signals are for the thread that runs the program: a worker must not be the one that is interrupted. */
static int start_thread(worker *w) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return rc;
}

static int processors(void) {
  cpu_set_t set;
  return pthread_getaffinity_np(pthread_self(), sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

ph_status ph_pool_new(ph_pool **out, int threads, ph_err *err) {
  if (threads < 1) {
    return ph_err_set(err, PH_E_ARG, "threads must be at least 1, got %d", threads);
  }
  if (threads > MAX_THREADS) {
    return ph_err_set(err, PH_E_LIMIT, "threads must be at most %d, got %d", MAX_THREADS, threads);
  }
  ph_pool *p = ph_mem_new(1, sizeof *p);
  worker *workers = p ? ph_mem_new((size_t)threads, sizeof *workers) : NULL;
  if (!workers) {
    ph_mem_free(p);
    return ph_err_set(err, PH_E_NOMEM, "threads: out of memory");
  }
  p->threads = threads;
  p->workers = workers;
  p->spin = threads <= processors();
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->begin, NULL);
  pthread_cond_init(&p->end, NULL);
  for (; p->started < threads - 1; p->started++) {
    workers[p->started] = (worker){.pool = p, .index = p->started + 1};
    if (start_thread(&workers[p->started])) {
      int begun = p->started + 1;
      ph_pool_free(p);
      return ph_err_set(err, PH_E_LIMIT, "threads: the system started %d of %d", begun, threads);
    }
  }
  *out = p;
  return PH_OK;
}

void ph_pool_free(ph_pool *p) {
  if (!p) {
    return;
  }
  assert(!p->running);
  atomic_store(&p->stop, true);
  wake(p, &p->begin);
  for (int i = 0; i < p->started; i++) {
    pthread_join(p->workers[i].thread, NULL);
  }
  pthread_cond_destroy(&p->end);
  pthread_cond_destroy(&p->begin);
  pthread_mutex_destroy(&p->mutex);
  ph_mem_free(p->workers);
  ph_mem_free(p);
}

int ph_pool_threads(const ph_pool *p) { return p->threads; }

static atomic_int interrupted;

void ph_interrupt_set(int on) { atomic_store(&interrupted, on); }

int ph_interrupt_get(void) { return atomic_load_explicit(&interrupted, memory_order_relaxed); }
