#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Milliseconds on the monotonic clock, for deadlines. */
int64_t monotonic_ms(void);

/* Nanoseconds since 1970, comparable with other machines. */
int64_t unix_ns(void);

#endif
