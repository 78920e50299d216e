/* pool.h - a fixed set of worker threads and one way to use them: run n independent tasks, then go on.
 *
 * The caller takes part. Tasks are claimed from an atomic counter, so which thread runs a task is not defined; a task
 * must write only what belongs to it. Workers spin for a bounded time and then sleep on a condition variable. This is
 * the only file that includes pthread.h.
 */
#ifndef PH_BASE_POOL_H
#define PH_BASE_POOL_H

#include "base/status.h"

typedef struct ph_pool ph_pool;

/* task in [0, n), worker in [0, threads): scratch memory may be indexed by worker. */
typedef void ph_pool_fn(void *ctx, int task, int worker);

/* threads >= 1; 1 starts no thread. Errors: PH_E_ARG, PH_E_NOMEM, PH_E_LIMIT (thread could not be started). */
ph_status ph_pool_new(ph_pool **out, int threads, ph_err *err) PH_MUST_CHECK;
void ph_pool_free(ph_pool *pool);
int ph_pool_threads(const ph_pool *pool);

/* Runs fn(ctx, 0..n-1, .) and returns when all are done. Allocates nothing. Not reentrant. */
void ph_pool_run(ph_pool *pool, int n, ph_pool_fn *fn, void *ctx);

/* A flag that signal handlers set and that long loops poll between tasks. */
void ph_interrupt_set(int on);
int ph_interrupt_get(void);

#endif
