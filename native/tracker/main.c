/*
 * Makes the kernel record which pages of a pod's processes are written, so that a dump has to read only these.
 *
 *   tracker serve       serves requests at the unix socket `track` in the directory open as descriptor 202, until the
 *                       other end closes it
 *   tracker try         tests whether this kernel can do it. Prints `yes`, or `no REASON`.
 *
 * Request   prepare PID:START...     all processes to track; those tracked before and not named are released
 * Answer    prepared MICROSECONDS PID=yes|REASON...    the longest time for which a process was held
 *
 * Each address space has a userfaultfd of its own, which this program holds (inject.c). All private anonymous mappings are
 * registered with it for asynchronous write protection (mappings.c). CRIU then asks the kernel which pages were written,
 * and protects them again, while it dumps (native/criu-shim/track.c); it needs nothing of this program. If this program
 * ends, the kernel removes all protection, and every page counts as written.
 *
 * Must run without a filter of system calls of its own: it suspends that of one thread, for two calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "descriptors.h"
#include "fail.h"
#include "number.h"
#include "tracker.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { LINE = 4096 };

/* After this time, an answer begins with no other process: the agent waits for 10 s (tracker.ts). */
#define ANSWER_NS (2000 * (int64_t)NS_PER_MS)

static struct tracked processes[PROCESSES_MAX];

static void release(struct tracked *process)
{
	if (process->uffd >= 0)
		close(process->uffd);
	if (process->pidfd >= 0)
		close(process->pidfd);
	*process = (struct tracked){ .uffd = -1, .pidfd = -1 };
}

static struct tracked *find(pid_t pid, uint64_t start)
{
	for (int i = 0; i < PROCESSES_MAX; i++)
		if (processes[i].pid == pid && processes[i].start == start)
			return &processes[i];
	return NULL;
}

/* NULL: there is no room. */
static struct tracked *add(pid_t pid, uint64_t start)
{
	struct tracked *process = find(0, 0);

	if (!process)
		return NULL;
	*process = (struct tracked){ .pid = pid, .start = start, .uffd = -1 };
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* Only now: the pidfd is that of the process that the request means. */
	if (process->pidfd < 0 || !is_same(process))
		process->refused = "gone";
	return process;
}

/* Appends to a line that has room for all answers. */
__attribute__((format(printf, 2, 3))) static void append(char *line, const char *format, ...)
{
	const size_t length = strlen(line);
	va_list values;

	va_start(values, format);
	vsnprintf(line + length, LINE - length, format, values);
	va_end(values);
}

static void answer(int socket, char *request)
{
	char line[LINE] = "", results[LINE] = "", *state, *word = strtok_r(request, " ", &state);
	const int64_t until = monotonic_ns() + ANSWER_NS;
	int64_t longest = 0;

	if (!word || strcmp(word, "prepare") != 0)
		exit(fail("unknown request"));
	for (int i = 0; i < PROCESSES_MAX; i++)
		processes[i].seen = false;
	while ((word = strtok_r(NULL, " ", &state))) {
		const char *colon = strchr(word, ':');
		struct tracked *process;
		const char *why = "many";
		int64_t pid, start, held_ns = 0;

		if (!colon || !parse_digits(word, (size_t)(colon - word), INT32_MAX, &pid) || pid == 0 ||
		    !parse_number(colon + 1, INT64_MAX, &start))
			exit(fail("bad process: %s", word));
		process = find((pid_t)pid, (uint64_t)start);
		if (!process)
			process = add((pid_t)pid, (uint64_t)start);
		if (process) {
			process->seen = true;
			why = prepare(process, until, &held_ns);
		}
		if (held_ns > longest)
			longest = held_ns;
		append(results, " %d=%s", (int)pid, why ? why : "yes");
	}
	for (int i = 0; i < PROCESSES_MAX; i++)
		if (!processes[i].seen && processes[i].pid)
			release(&processes[i]);
	append(line, "prepared %lld%s\n", (long long)(longest / NS_PER_US), results);
	if (write(socket, line, strlen(line)) != (ssize_t)strlen(line))
		exit(fail("answer: %s", strerror(errno)));
}

static int serve(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[LINE];
	size_t have = 0;
	ssize_t count;

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/track", FD_WORK);
	if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof address) != 0)
		return fail("%s: %s", address.sun_path, strerror(errno));
	for (int i = 0; i < PROCESSES_MAX; i++)
		processes[i] = (struct tracked){ .uffd = -1, .pidfd = -1 };
	while ((count = read(client, request + have, sizeof request - have)) > 0) {
		char *end;

		have += (size_t)count;
		while ((end = memchr(request, '\n', have))) {
			const size_t length = (size_t)(end - request) + 1;

			*end = 0;
			answer(client, request);
			memmove(request, request + length, have - length);
			have -= length;
		}
		if (have == sizeof request)
			return fail("a request is too long");
	}
	return 0;
}

int main(int count, char **arguments)
{
	const char *why;

	/* A process of a pod must not reach the descriptors, not even as the same user. */
	prctl(PR_SET_DUMPABLE, 0);
	/* In the middle of a change of registers, an end would leave the process changed. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* The kernel reaps the children of take_over(). */
	signal(SIGCHLD, SIG_IGN);
	if (count == 2 && strcmp(arguments[1], "serve") == 0)
		return serve();
	if (count != 2 || strcmp(arguments[1], "try") != 0) {
		fputs("usage: tracker serve|try\n", stderr);
		return EXIT_OWN;
	}
	why = try_kernel();
	printf(why ? "no %s\n" : "yes\n", why);
	return 0;
}
