/* mem.c - calloc with alignment and books. calloc, not memset: fresh pages of a large block cost nothing until used.
 *
 * Blocks from LARGE on are mapped on their own, aligned so that the kernel can back them with large pages: tapes and weights
 * are walked once a step, and with small pages address translation costs more than the data.
 */
#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, LIVE = 0x70686d65, LARGE = 2 << 20 };

#ifdef __SANITIZE_ADDRESS__
enum { WATCHED = 1 }; /* the sanitizer sees what calloc gives, not mappings */
#else
enum { WATCHED = 0 };
#endif

/* Stands in the 64 bytes before every block. */
typedef struct head {
  void *raw;
  size_t bytes;
  size_t mapped; /* length of the mapping at raw; 0: from calloc */
  uint32_t mark; /* LIVE until freed: finds double frees and foreign pointers */
} head;

_Static_assert(sizeof(head) <= ALIGN, "the head must fit before the block");

static _Atomic int64_t live_blocks;
static _Atomic int64_t live_bytes;
static _Atomic int64_t all_calls;
static _Atomic int64_t peak_bytes;
static _Atomic int64_t fail_in;

static head *head_of(void *block) { return (head *)((char *)block - ALIGN); }

/* True for the call that takes the countdown from 1 to 0. */
static bool must_fail(void) {
  int64_t n = atomic_load_explicit(&fail_in, memory_order_relaxed);
  while (n > 0) {
    if (atomic_compare_exchange_weak(&fail_in, &n, n - 1)) {
      return n == 1;
    }
  }
  return false;
}

static void book(size_t bytes) {
  atomic_fetch_add(&live_blocks, 1);
  int64_t now = atomic_fetch_add(&live_bytes, (int64_t)bytes) + (int64_t)bytes;
  int64_t top = atomic_load(&peak_bytes);
  while (now > top && !atomic_compare_exchange_weak(&peak_bytes, &top, now)) {
  }
}

/* A zeroed mapping of at least `total` bytes that starts on a LARGE boundary; *mapped is its length. */
static void *map_large(size_t total, size_t *mapped) {
  size_t length = (total + LARGE - 1) / LARGE * LARGE;
  char *raw = mmap(NULL, length + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    return NULL;
  }
  char *start = (char *)(((uintptr_t)raw + LARGE - 1) / LARGE * LARGE);
  if (start > raw) {
    munmap(raw, (size_t)(start - raw));
  }
  if (start < raw + LARGE) {
    munmap(start + length, (size_t)(raw + LARGE - start));
  }
  madvise(start, length, MADV_HUGEPAGE);
  *mapped = length;
  return start;
}

void *ph_mem_new(size_t n, size_t size) {
  size_t bytes;
  size_t total;
  size_t mapped = 0;
  atomic_fetch_add(&all_calls, 1);
  if (must_fail() || __builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, 2 * ALIGN, &total) ||
      total > PTRDIFF_MAX - 2 * LARGE) {
    return NULL;
  }
  char *raw = total >= LARGE && !WATCHED ? map_large(total, &mapped) : calloc(1, total);
  if (!raw) {
    return NULL;
  }
  char *block = (char *)(((uintptr_t)raw + 2 * ALIGN - 1) / ALIGN * ALIGN);
  *head_of(block) = (head){.raw = raw, .bytes = bytes, .mapped = mapped, .mark = LIVE};
  book(bytes);
  return block;
}

void ph_mem_free(void *block) {
  if (!block) {
    return;
  }
  head *h = head_of(block);
  assert(h->mark == LIVE);
  h->mark = 0;
  atomic_fetch_sub(&live_blocks, 1);
  atomic_fetch_sub(&live_bytes, (int64_t)h->bytes);
  if (h->mapped) {
    munmap(h->raw, h->mapped);
  } else {
    free(h->raw);
  }
}

char *ph_mem_strdup(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = ph_mem_new(n, 1);
  if (copy) {
    memcpy(copy, text, n);
  }
  return copy;
}

void *ph_mem_grow(void *block, size_t used, size_t n, size_t size) {
  void *bigger = ph_mem_new(n, size);
  if (!bigger || !block) {
    return bigger;
  }
  assert(used <= head_of(block)->bytes && used <= n * size);
  memcpy(bigger, block, used);
  ph_mem_free(block);
  return bigger;
}

ph_mem_stats ph_mem_now(void) {
  return (ph_mem_stats){.blocks = atomic_load(&live_blocks),
                        .bytes = atomic_load(&live_bytes),
                        .calls = atomic_load(&all_calls),
                        .peak = atomic_load(&peak_bytes)};
}

void ph_mem_fail_at(int64_t n) { atomic_store(&fail_in, n); }
