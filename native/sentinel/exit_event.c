#include "exit_event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "watch.h"

/* Each event has a ring of two pages. The descriptors of further processes tell alone. */
enum { EVENTS_MAX = 1000 };

struct exit_event {
	struct source source; /* the event */
	struct sentinel *sentinel;
	pid_t pid;
	void *ring; /* without one the event wakes nothing */
};

static int count;

static size_t ring_bytes(void)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns a directory of tracefs that is mounted nowhere: not every node has mounted it. -1 with errno. */
static int open_tracefs(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), directory = -1, error;

	if (context < 0)
		return -1;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		directory = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	error = errno;
	close(context);
	errno = error;
	return directory;
}

/* Returns the kernel's number of the trace; 0 with errno. */
static uint64_t find_trace(void)
{
	char text[32] = "";
	int directory = open_tracefs(), fd, error;
	ssize_t n = -1;

	if (directory < 0)
		return 0;
	fd = openat(directory, "events/sched/sched_process_exit/id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof text - 1);
	error = errno;
	if (fd >= 0)
		close(fd);
	close(directory);
	errno = n < 0 ? error : ENOENT;
	return n <= 0 ? 0 : strtoull(text, NULL, 10);
}

/* The first thread ends once. A hang-up says that its event is over. */
static void ready(struct source *source, uint32_t events)
{
	struct exit_event *event = (struct exit_event *)source;

	(void)events;
	loop_close(&event->sentinel->loop, source);
	watch_first_ended(event->sentinel, event->pid);
}

/* Returns 0 or an errno. */
static int open_event(struct exit_event *event, uint64_t trace)
{
	struct perf_event_attr wanted = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof wanted,
		.config = trace,
		.sample_period = 1,
		.wakeup_events = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &wanted, event->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	event->source = (struct source){ .fd = fd, .urgent = true, .ready = ready };
	event->ring = mmap(NULL, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (event->ring != MAP_FAILED && loop_add(&event->sentinel->loop, &event->source, EPOLLIN))
		return 0;
	return errno;
}

struct exit_event *exit_event_begin(struct sentinel *sentinel, pid_t pid)
{
	static uint64_t trace;
	static bool cannot;
	struct exit_event *event;
	int error = 0;

	if (cannot || count >= EVENTS_MAX)
		return NULL;
	if (!trace && !(trace = find_trace()))
		error = errno;
	event = error ? NULL : calloc(1, sizeof *event);
	if (event) {
		*event = (struct exit_event){ .source = { .fd = -1 }, .sentinel = sentinel, .pid = pid, .ring = MAP_FAILED };
		count++;
		error = open_event(event, trace);
		if (!error)
			return event;
		exit_event_end(event);
	}
	/* The process may have ended. */
	if (error && error != ESRCH) {
		cannot = true;
		log_line("info", "ends are heard of once their memory is freed", ",\"error\":\"%s\"", strerror(error));
	}
	return NULL;
}

void exit_event_end(struct exit_event *event)
{
	if (!event)
		return;
	count--;
	if (event->ring != MAP_FAILED)
		munmap(event->ring, ring_bytes());
	loop_forget(&event->sentinel->loop, &event->source);
}
