#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	void (*act)(void *context);
	void *context;
} between;

void process_between(void (*act)(void *context), void *context)
{
	between.act = act;
	between.context = context;
}

void process_step(void)
{
	if (between.act)
		between.act(between.context);
}

int process_open(struct process process)
{
	struct process_stat stat;
	int fd;

	process_step();
	fd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	if (fd < 0)
		return -1;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Checked after opening: if the pid still belongs to the intended process, so does the descriptor. */
	if (process_stat(process.pid, &stat) && stat.start == process.start)
		return fd;
	close(fd);
	errno = ESRCH;
	return -1;
}

int process_signal(struct process process, int signal)
{
	int fd = process_open(process), error;

	if (fd < 0)
		return -1;
	error = syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0 ? 0 : errno;
	close(fd);
	errno = error;
	return error ? -1 : 0;
}

bool process_ended(struct process process)
{
	struct process_stat stat;

	process_step();
	return !process_stat(process.pid, &stat) || stat.start != process.start || stat.state == 'Z' || stat.state == 'X';
}

bool process_stopped(struct process process)
{
	struct process_stat stat;

	process_step();
	return !process_stat(process.pid, &stat) || stat.start != process.start || strchr("TtZX", stat.state);
}

bool process_has_pending(pid_t pid, int signal)
{
	static const char *const sets[] = { "\nSigPnd:", "\nShdPnd:" };
	char text[8192];
	uint64_t pending = 0;

	if (!process_read(pid, "status", text, sizeof text))
		return true;
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		const char *at = strstr(text, sets[i]);
		uint64_t set;

		if (!at || sscanf(at + strlen(sets[i]), "%" SCNx64, &set) != 1)
			return true;
		pending |= set;
	}
	return pending & UINT64_C(1) << (signal - 1);
}

pid_t process_tracer(pid_t pid)
{
	static const char name[] = "\nTracerPid:";
	char text[8192], *at;
	int tracer = 0;

	at = process_read(pid, "status", text, sizeof text) ? strstr(text, name) : NULL;
	return at && sscanf(at + strlen(name), "%d", &tracer) == 1 ? (pid_t)tracer : 0;
}

bool processes_add(struct processes *set, struct process process)
{
	if (set->count == set->room) {
		size_t room = set->room ? 2 * set->room : 64;
		struct process *list = room > PROCESSES_MAX ? NULL : realloc(set->list, room * sizeof *list);

		if (!list)
			return false;
		set->list = list;
		set->room = room;
	}
	set->list[set->count++] = process;
	return true;
}

static bool have(struct processes *set, pid_t pid, const uint64_t *start)
{
	size_t from = set->next < set->count ? set->next : 0;

	for (size_t i = 0; i < set->count; i++) {
		size_t at = from + i < set->count ? from + i : from + i - set->count;

		if (set->list[at].pid != pid || (start && set->list[at].start != *start))
			continue;
		set->next = at + 1;
		return true;
	}
	return false;
}

bool processes_have(struct processes *set, pid_t pid)
{
	return have(set, pid, NULL);
}

bool processes_have_this(struct processes *set, struct process process)
{
	return have(set, process.pid, &process.start);
}

void processes_free(struct processes *set)
{
	free(set->list);
	*set = (struct processes){ 0 };
}
