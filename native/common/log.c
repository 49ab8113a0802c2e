#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

/* This lock protects the sink. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The only log of the process, so that callers need not pass it around. */
static struct {
	int fd;
	const char *path; /* NULL: standard error */
	size_t written;
} sink = { .fd = STDERR_FILENO };

bool log_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return false;
	if (sink.path)
		close(sink.fd);
	sink.fd = fd;
	sink.path = path;
	sink.written = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
	return true;
}

static void rotate(void)
{
	char older[4096];

	if ((size_t)snprintf(older, sizeof older, "%s.1", sink.path) >= sizeof older || rename(sink.path, older) != 0)
		/* An empty log is better than one without a bound. */
		if (ftruncate(sink.fd, 0) != 0)
			return;
	log_open(sink.path);
}

static void write_line(const char *line, size_t length)
{
	struct pollfd out = { .events = POLLOUT };

	pthread_mutex_lock(&lock);
	if (sink.path && sink.written > LOG_BYTES)
		rotate();
	out.fd = sink.fd;
	/* A pipe without a reader loses the line, but never blocks us. */
	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT)) {
		ssize_t n = write(sink.fd, line, length);

		sink.written += n > 0 ? (size_t)n : 0;
	}
	pthread_mutex_unlock(&lock);
}

void log_line(const char *level, const char *msg, const char *members, ...)
{
	/* A pipe that polls writable takes this much at once, without blocking: less than PIPE_BUF. */
	char line[1024];
	va_list values;
	int used = snprintf(line, sizeof line, "{\"level\":\"%s\",\"time\":%lld,\"msg\":\"%s\"", level,
			    (long long)(unix_ns() / NS_PER_MS), msg);

	if (used < 0 || (size_t)used >= sizeof line - 3)
		return;
	va_start(values, members);
	int more = vsnprintf(line + used, sizeof line - 2 - (size_t)used, members, values);
	va_end(values);
	if (more < 0 || (size_t)more >= sizeof line - 2 - (size_t)used)
		return;
	memcpy(line + used + more, "}\n", 2);
	write_line(line, (size_t)(used + more) + 2);
}

void log_failure(const char *what, int error)
{
	log_line("error", what, ",\"error\":\"%s\"", strerror(error));
}

const char *log_safe(const char *text)
{
	static char safe[256];
	size_t i = 0;

	for (; text[i] && i < sizeof safe - 1; i++)
		safe[i] = text[i] < 0x20 || text[i] > 0x7e || text[i] == '"' || text[i] == '\\' ? '?' : text[i];
	safe[i] = '\0';
	return safe;
}
