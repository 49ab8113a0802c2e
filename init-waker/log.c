#include "log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

void log_line(const char *level, const char *msg, const char *members, ...)
{
	/* A pipe that polls writable takes this much (PIPE_BUF) at once, without blocking. */
	char line[512];
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	va_list values;
	int used = snprintf(line, sizeof line, "{\"level\":\"%s\",\"time\":%lld,\"msg\":\"%s\"", level,
			    (long long)(unix_ns() / 1000000), msg);

	if (used < 0 || (size_t)used >= sizeof line - 3)
		return;
	va_start(values, members);
	int more = vsnprintf(line + used, sizeof line - 2 - (size_t)used, members, values);
	va_end(values);
	if (more < 0 || (size_t)more >= sizeof line - 2 - (size_t)used)
		return;
	memcpy(line + used + more, "}\n", 2);
	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) && write(STDERR_FILENO, line, (size_t)(used + more) + 2) < 0)
		return;
}

void log_failure(const char *what, int error)
{
	log_line("error", what, ",\"error\":\"%s\"", strerror(error));
}
