#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a decimal number of at most `max`: no sign, no spaces, no leading zeros, nothing after it. */
bool parse_number(const char *text, int64_t max, int64_t *number);

#endif
