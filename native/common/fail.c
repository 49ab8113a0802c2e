#include "fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "usage.h"

int fail(const char *format, ...)
{
	int saved = errno;
	va_list values;

	va_start(values, format);
	/* One write, because other processes share this standard error. */
	char line[1024];
	int length = vsnprintf(line, sizeof line, format, values);
	va_end(values);
	if (length >= 0)
		fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, line, (size_t)length < sizeof line ? "" : "...");
	errno = saved;
	return EXIT_OWN;
}

int failed(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	return EXIT_FAILED;
}
