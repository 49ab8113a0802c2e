/*
 * Finds our children. /proc may be mounted for an outer pid namespace, and then its numbers are not those that kill()
 * takes: kill() would hit other processes. And a restore mounts another /proc over it.
 */
#include "nsrun.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LIST_BYTES
/* The kernel returns at most this much at once, in whole numbers; a test has a smaller value. */
#define LIST_BYTES 4096
#endif

enum { DEPTH = 32 };

static int proc = -1, list = -1;
/* Number of pid namespaces from that of /proc to ours. */
static size_t depth;

/* Reads the pids of a process in each namespace, from that of /proc inwards. */
static size_t numbers_of(const char *process, long *numbers)
{
	char path[48], text[4096], *line;
	size_t count = 0;
	ssize_t length;
	int file;

	snprintf(path, sizeof path, "%s/status", process);
	file = openat(proc, path, O_RDONLY | O_CLOEXEC);
	length = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	if (length < 0)
		return 0;
	text[length] = 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	for (char *at = line + 7, *end; count < DEPTH; at = end) {
		numbers[count] = strtol(at, &end, 10);
		if (end == at || memchr(at, '\n', (size_t)(end - at)))
			break;
		count++;
	}
	return count;
}

void know_children(void)
{
	long numbers[DEPTH];

	proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	list = proc < 0 ? -1 : openat(proc, "thread-self/children", O_RDONLY | O_CLOEXEC);
	depth = list < 0 ? 0 : numbers_of("thread-self", numbers);
}

bool kill_children(void)
{
	char text[LIST_BYTES], process[16], *at = text, *end;
	ssize_t length = depth == 0 ? -1 : pread(list, text, sizeof text - 1, 0);

	if (length < 0)
		return false;
	text[length] = 0;
	/*
	 * A number that is cut off would belong to another process. A later call finds the children that did not fit.
	 */
	if (length == sizeof text - 1)
		text[strrchr(text, ' ') ? strrchr(text, ' ') - text : 0] = 0;
	for (long pid = strtol(at, &end, 10); end != at; at = end, pid = strtol(at, &end, 10)) {
		long numbers[DEPTH];

		snprintf(process, sizeof process, "%ld", pid);
		if (numbers_of(process, numbers) >= depth)
			kill((pid_t)numbers[depth - 1], SIGKILL);
	}
	return true;
}
