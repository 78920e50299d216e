/* clock.h - seconds since some fixed moment, for durations; nothing that is computed may depend on them. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <time.h>

static inline double ph_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
