#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a decimal number from 0 to `max` that fills all `length` bytes of `text`: no sign, no space, no leading zero.
 * `max` is at most LONG_MAX / 10 - 1.
 */
bool parse_number(const char *text, size_t length, long max, long *number);

#endif
