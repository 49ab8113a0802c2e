#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Milliseconds on a clock that never jumps: for deadlines. */
int64_t monotonic_ms(void);

/* Nanoseconds since 1970: for other machines. */
int64_t unix_ns(void);

#endif
