#include "tracker.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { PAUSE_US = 20 };

static bool is_held(const struct held *held, pid_t thread)
{
	for (int i = 0; i < held->count; i++)
		if (held->threads[i].id == thread)
			return true;
	return false;
}

int await_stop(pid_t thread, int64_t until)
{
	int status;

	for (;;) {
		const pid_t found = waitpid(thread, &status, __WALL | WNOHANG);

		if (found == thread)
			return WIFSTOPPED(status) ? status : -1;
		if ((found < 0 && errno != EINTR) || monotonic_ns() > until)
			return -1;
		usleep(PAUSE_US);
	}
}

/* Adds the threads that are not held yet. Returns how many, -1 if it fails. */
static int seize_new(struct held *held, DIR *directory)
{
	const int before = held->count;

	rewinddir(directory);
	for (struct dirent *entry; (entry = readdir(directory));) {
		const pid_t thread = atoi(entry->d_name);

		if (thread <= 0 || is_held(held, thread))
			continue;
		if (held->count == THREADS_MAX)
			return -1;
		/* Without options: they count at once, and the thread runs on until the interrupt stops it. */
		if (ptrace(PTRACE_SEIZE, thread, NULL, 0L) != 0) {
			/* It has ended meanwhile, or is a zombie. */
			if (errno == ESRCH)
				continue;
			return -1;
		}
		held->threads[held->count].id = thread;
		held->threads[held->count++].signal = 0;
		ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	}
	return held->count - before;
}

const char *hold(struct held *held, pid_t pid)
{
	char path[32];
	DIR *directory;
	const char *why = NULL;
	int fresh;

	*held = (struct held){ .pid = pid, .until = monotonic_ns() + HELD_NS };
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return "gone";
	/* Until a pass finds no new thread: a thread that runs may make others. */
	do {
		fresh = seize_new(held, directory);
		if (fresh < 0)
			why = "traced";
		for (int i = held->count - (fresh > 0 ? fresh : 0); i < held->count && !why; i++) {
			const int status = await_stop(held->threads[i].id, held->until);

			/* A thread in vfork() or in a device does not stop. */
			if (status < 0)
				why = "busy";
			else if (status >> 16 != EVENT_STOP)
				held->threads[i].signal = WSTOPSIG(status);
		}
	} while (fresh > 0 && !why);
	closedir(directory);
	return why ? why : held->count > 0 ? NULL : "gone";
}

void let_go(struct held *held)
{
	for (int i = 0; i < held->count; i++)
		ptrace(PTRACE_DETACH, held->threads[i].id, NULL, (long)held->threads[i].signal);
	held->count = 0;
}
