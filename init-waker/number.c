#include "number.h"

bool parse_number(const char *text, size_t length, long max, long *number)
{
	long value = 0;

	if (length == 0 || (length > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
		if (value > max)
			return false;
	}
	*number = value;
	return true;
}
