#include "number.h"

#include <string.h>

bool parse_number(const char *text, int64_t max, int64_t *number)
{
	return parse_digits(text, strlen(text), max, number);
}

bool parse_digits(const char *text, size_t length, int64_t max, int64_t *number)
{
	int64_t value = 0;

	if (length == 0 || (length > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < length; i++) {
		int digit = text[i] - '0';

		if (digit < 0 || digit > 9 || digit > max || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return true;
}
