#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock; deadlines use it. */
int64_t monotonic_ns(void);

/* The same in milliseconds. */
int64_t monotonic_ms(void);

/* Nanoseconds since 1970, comparable with other machines. */
int64_t unix_ns(void);

enum { NS_PER_US = 1000, NS_PER_MS = 1000000 };

#endif
