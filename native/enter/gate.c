/*
 * Starting CRIU takes longer than dumping a small application. So that the application stands still only for the dump,
 * CRIU is started before it is stopped: at `pre-dump`, when it is about to look at the processes for the first time, it
 * says so and waits until it may. Both is said by files in its work directory, descriptor 202 of the keeper.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "enter.h"

enum { WAIT_NS = 50000, WAITS_MAX = 60 * 20000 };

/* The directory is known by the name that CRIU started us by: /proc/KEEPER/fd/200/enter. */
static int open_work(const char *self)
{
	const char *end = strstr(self, "/fd/200/");
	char path[64];

	if (!end || strncmp(self, "/proc/", 6) != 0 || end - self > 32)
		return -1;
	snprintf(path, sizeof path, "%.*s/fd/202", (int)(end - self), self);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int wait_for_go(const char *self)
{
	static const struct timespec moment = { .tv_nsec = WAIT_NS };
	int work = open_work(self), said;

	/* Only who asked for it by a file of this name opens the gate. */
	if (work < 0 || faccessat(work, "gate", F_OK, 0) != 0)
		return 0;
	said = openat(work, "ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (said < 0)
		return fail("ready: %s", strerror(errno));
	for (long waits = 0; waits < WAITS_MAX; waits++) {
		if (faccessat(work, "go", F_OK, 0) == 0)
			return 0;
		nanosleep(&moment, NULL);
	}
	return fail("nobody opened the gate");
}
