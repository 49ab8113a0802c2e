#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a decimal number of at most `max`: no sign, no spaces, no leading zeros, nothing after it. */
bool parse_number(const char *text, int64_t max, int64_t *number);

/* The same for a text that ends after `length` bytes. */
bool parse_digits(const char *text, size_t length, int64_t max, int64_t *number);

#endif
