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
 * Must run without a filter of system calls of its own: it suspends that of a process while it holds it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
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
#include "process_stat.h"
#include "tracker.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { LINE = 4096 };

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
	struct process_stat stat;
	struct tracked *process = find(0, 0);

	if (!process)
		return NULL;
	*process = (struct tracked){ .pid = pid, .start = start, .uffd = -1 };
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* Only now: the pidfd is that of the process that the request means. */
	if (process->pidfd < 0 || !process_stat(pid, &stat) || stat.start != start)
		process->refused = "gone";
	return process;
}

struct preparation {
	struct tracked *process;
	const char *why;
	int64_t held_ns;
};

/*
 * True for the child of a vfork() that has not run its program yet. Its memory is its parent's: what it registers now would
 * be taken for its own later.
 */
static bool has_parents_memory(pid_t pid)
{
	enum { KCMP_MEMORY = 1 };
	struct process_stat stat;

	return !process_stat(pid, &stat) || syscall(SYS_kcmp, pid, stat.parent, KCMP_MEMORY, 0, 0) == 0;
}

static const char *while_held(struct tracked *process, const struct held *held)
{
	bool for_good = false;
	const char *why = NULL;

	if (has_parents_memory(process->pid))
		return "vfork";
	if (process->uffd < 0)
		why = take_userfaultfd(held, process->pidfd, &process->uffd, &for_good);
	if (!why)
		why = register_mappings(held, process->uffd);
	if (why && process->uffd >= 0) {
		close(process->uffd);
		process->uffd = -1;
	}
	if (why && for_good)
		process->refused = why;
	return why;
}

/*
 * Runs as a thread of its own: at its end the kernel lets all threads run that could not be let go. An application is
 * stopped meanwhile, so the thread comes before the node's other work; it sleeps while it waits.
 */
static void *prepare(void *argument)
{
	struct preparation *work = argument;
	static struct held held;
	const struct sched_param first = { .sched_priority = 1 };
	int64_t began;

	syscall(SYS_sched_setscheduler, 0, SCHED_RR, &first);
	began = monotonic_ns();

	work->why = hold(&held, work->process->pid);
	if (!work->why)
		work->why = while_held(work->process, &held);
	let_go(&held);
	work->held_ns = monotonic_ns() - began;
	return NULL;
}

static const char *prepared(struct tracked *process, int64_t *longest_ns)
{
	struct preparation work = { .process = process };
	pthread_t thread;

	if (process->refused)
		return process->refused;
	if (pthread_create(&thread, NULL, prepare, &work) != 0)
		return "memory";
	pthread_join(thread, NULL);
	if (work.held_ns > *longest_ns)
		*longest_ns = work.held_ns;
	return work.why ? work.why : "yes";
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
	int64_t longest = 0;

	if (!word || strcmp(word, "prepare") != 0)
		exit(fail("unknown request"));
	for (int i = 0; i < PROCESSES_MAX; i++)
		processes[i].seen = false;
	while ((word = strtok_r(NULL, " ", &state))) {
		const char *colon = strchr(word, ':');
		struct tracked *process;
		int64_t pid, start;

		if (!colon || !parse_digits(word, (size_t)(colon - word), INT32_MAX, &pid) || pid == 0 ||
		    !parse_number(colon + 1, INT64_MAX, &start))
			exit(fail("bad process: %s", word));
		process = find((pid_t)pid, (uint64_t)start);
		if (!process)
			process = add((pid_t)pid, (uint64_t)start);
		if (process)
			process->seen = true;
		append(results, " %d=%s", (int)pid, process ? prepared(process, &longest) : "many");
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
