#include "number.h"

bool parse_number(const char *text, int64_t max, int64_t *number)
{
	int64_t value = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return false;
	for (; *text; text++) {
		int digit = *text - '0';

		if (digit < 0 || digit > 9 || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return true;
}
