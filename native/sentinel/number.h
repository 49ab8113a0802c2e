#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal number as people write it, at most `max`: no sign, no spaces, no leading zeros, nothing after it. */
bool parse_number(const char *text, int64_t max, int64_t *number);

#endif
