#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "number.h"

enum {
	/*
	 * A CRIU of the earlier sentinel may still run; when it is done, it leaves each task stopped that it found
	 * stopped.
	 */
	AGAIN_NS = 100 * NS_PER_MS,
	LINE_BYTES = 64,
};

/* The only journal of the process. `left`: processes of an earlier sentinel that still have to resume. */
static struct {
	int fd;
	struct processes left;
	int64_t next;
	bool empty;
} journal = { .fd = -1 };

static bool read_left(void)
{
	FILE *file = fdopen(dup(journal.fd), "r");
	char line[LINE_BYTES];
	struct process process;
	int pid;

	if (!file)
		return false;
	/* A truncated line belongs to a process that was not stopped yet. */
	while (fgets(line, sizeof line, file))
		if (strchr(line, '\n') && sscanf(line, "%d %" SCNu64, &pid, &process.start) == 2 && pid > 1) {
			process.pid = pid;
			if (!processes_add(&journal.left, process))
				break;
		}
	fclose(file);
	return true;
}

bool journal_open(const char *socket)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof path, "%s.stopped", socket) >= sizeof path) {
		errno = ENAMETOOLONG;
		return false;
	}
	journal.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (journal.fd < 0 || !read_left())
		return false;
	journal.empty = journal.left.count == 0;
	/* A CRIU that has just passed its gate needs time to seize all tasks. */
	journal.next = monotonic_ns() + AGAIN_NS;
	if (!journal.empty)
		log_line("warn", "continues what an earlier sentinel had stopped", ",\"count\":%zu", journal.left.count);
	return true;
}

void journal_note(struct process process)
{
	char line[LINE_BYTES];
	int length = snprintf(line, sizeof line, "%d %" PRIu64 "\n", (int)process.pid, process.start);

	if (write(journal.fd, line, (size_t)length) != length)
		log_failure("the journal of stops", errno);
	journal.empty = false;
}

void journal_clear(void)
{
	if (journal.empty || journal.left.count > 0)
		return;
	if (ftruncate(journal.fd, 0) != 0)
		log_failure("the journal of stops", errno);
	journal.empty = true;
}

static void settle(size_t index)
{
	journal.left.list[index] = journal.left.list[--journal.left.count];
}

void journal_leave(pid_t pid)
{
	for (size_t i = journal.left.count; i-- > 0;)
		if (journal.left.list[i].pid == pid)
			settle(i);
}

int64_t journal_due(int64_t now)
{
	if (journal.left.count == 0)
		return INT64_MAX;
	if (now < journal.next)
		return journal.next;
	for (size_t i = journal.left.count; i-- > 0;) {
		struct process process = journal.left.list[i];
		struct process_stat stat;

		if (!process_stat(process.pid, &stat) || stat.start != process.start || !strchr("Tt", stat.state))
			settle(i);
		/* A traced process ignores the signal. Try again when the tracer has detached. */
		else if (stat.state == 'T')
			process_signal(process, SIGCONT);
	}
	journal.next = now + AGAIN_NS;
	return journal.left.count > 0 ? journal.next : INT64_MAX;
}
