/* mem.h - the only allocator of the core: aligned, counted, and able to fail on demand.
 *
 * Every block is 64-byte aligned and zero-filled. Live blocks and bytes are counted (atomically), so a test can state
 * that a function leaks nothing and that a running plan allocates nothing. `ph_mem_fail_at(n)` makes the n-th next
 * allocation fail once, which lets a test walk through every failure path.
 */
#ifndef PH_BASE_MEM_H
#define PH_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* n*size bytes, zeroed, 64-byte aligned; NULL if n*size overflows or memory is short. n*size = 0 gives a valid block. */
void *ph_mem_new(size_t n, size_t size);

/* Frees a block of ph_mem_new; NULL is allowed. */
void ph_mem_free(void *block);

/* A copy of `text` (NUL-terminated); NULL if memory is short. */
char *ph_mem_strdup(const char *text);

/* Grows a block of ph_mem_new that holds `used` bytes to at least n*size bytes; the old block is untouched on NULL. */
void *ph_mem_grow(void *block, size_t used, size_t n, size_t size);

typedef struct ph_mem_stats {
  int64_t blocks; /* live blocks */
  int64_t bytes;  /* live bytes, as asked for */
  int64_t calls;  /* allocations since the start of the process */
  int64_t peak;   /* highest `bytes` so far */
} ph_mem_stats;

ph_mem_stats ph_mem_now(void);

/* The n-th allocation from now (1 = the next) fails once; 0 switches this off. Tests only. */
void ph_mem_fail_at(int64_t n);

#endif
