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

/*
 * The only journal of the process. `left`: processes of an earlier sentinel that still have to resume, and `fenced`: those that it has
 * stopped for a fence. A process may be in both.
 */
static struct {
	int fd, earlier; /* `earlier`: during a rewrite, the file so far; else -1 */
	char path[4096], scratch[4096];
	struct processes left, fenced;
	int64_t next;
	bool empty, failed, held;
} journal = { .fd = -1, .earlier = -1 };

static const char of_fence[] = " fence";

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
			if (!processes_add(strstr(line, of_fence) ? &journal.fenced : &journal.left, process))
				break;
		}
	fclose(file);
	return true;
}

bool journal_open(const char *socket)
{
	size_t size = sizeof journal.path;

	if ((size_t)snprintf(journal.path, size, "%s.stopped", socket) >= size ||
	    (size_t)snprintf(journal.scratch, size, "%s.stopped.new", socket) >= size) {
		errno = ENAMETOOLONG;
		return false;
	}
	journal.fd = open(journal.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (journal.fd < 0 || !read_left())
		return false;
	journal.empty = !journal_has_left();
	/* A CRIU that has just passed its gate needs time to seize all tasks. */
	journal.next = monotonic_ns() + AGAIN_NS;
	if (!journal.empty)
		log_line("warn", "continues what an earlier sentinel had stopped", ",\"count\":%zu", journal.left.count + journal.fenced.count);
	return true;
}

void journal_note(struct process process, bool fence)
{
	char line[LINE_BYTES];
	int length = snprintf(line, sizeof line, "%d %" PRIu64 "%s\n", (int)process.pid, process.start, fence ? of_fence : "");

	if (write(journal.fd, line, (size_t)length) != length) {
		log_failure("the journal of stops", errno);
		journal.failed = true;
	}
	journal.empty = false;
}

bool journal_clear(void)
{
	if (journal_has_left())
		return false;
	if (!journal.empty && ftruncate(journal.fd, 0) != 0)
		log_failure("the journal of stops", errno);
	journal.empty = true;
	return true;
}

bool journal_begin(void)
{
	int fd = open(journal.scratch, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		log_failure("the journal of stops", errno);
		return false;
	}
	journal.earlier = journal.fd;
	journal.fd = fd;
	journal.failed = false;
	for (size_t i = 0; i < journal.left.count; i++)
		journal_note(journal.left.list[i], false);
	for (size_t i = 0; i < journal.fenced.count; i++)
		journal_note(journal.fenced.list[i], true);
	return true;
}

void journal_end(void)
{
	bool complete = !journal.failed && rename(journal.scratch, journal.path) == 0;

	/* The file so far has too much in it, not too little. */
	close(complete ? journal.earlier : journal.fd);
	if (!complete)
		journal.fd = journal.earlier;
	journal.earlier = -1;
}

static void settle(struct processes *set, size_t index)
{
	set->list[index] = set->list[--set->count];
}

static bool take_from(struct processes *set, struct process process)
{
	bool had = false;

	for (size_t i = set->count; i-- > 0;)
		if (set->list[i].pid == process.pid && set->list[i].start == process.start) {
			settle(set, i);
			had = true;
		}
	return had;
}

void journal_hold(void)
{
	journal.held = true;
}

bool journal_holds(void)
{
	return journal.held && journal.fenced.count > 0;
}

bool journal_take(struct process process, bool fence)
{
	bool had = take_from(&journal.left, process), waits = journal.held && !fence;

	if (waits && processes_have_this(&journal.fenced, process))
		return false;
	return take_from(&journal.fenced, process) || had;
}

void journal_leave(struct process process)
{
	if (!processes_add(&journal.left, process))
		log_failure("the journal of stops", ENOMEM);
}

bool journal_has_left(void)
{
	return journal.left.count + journal.fenced.count > 0;
}

/* Resumes the processes of a set unless they wait for a fence, and drops those that run or are gone. */
static void resume(struct processes *set)
{
	for (size_t i = set->count; i-- > 0;) {
		struct process process = set->list[i];
		struct process_stat stat;

		process_step();
		/* A traced process ignores the signal, or runs code of its tracer. Try again when the tracer has detached. */
		if (!process_stat(process.pid, &stat) || stat.start != process.start ||
		    (!strchr("Tt", stat.state) && !process_tracer(process.pid)))
			settle(set, i);
		else if (stat.state == 'T' && !(journal.held && processes_have_this(&journal.fenced, process)))
			process_signal(process, SIGCONT);
	}
}

int64_t journal_due(int64_t now)
{
	if (!journal_has_left())
		return INT64_MAX;
	if (now < journal.next)
		return journal.next;
	resume(&journal.left);
	resume(&journal.fenced);
	journal.next = now + AGAIN_NS;
	return journal_has_left() ? journal.next : INT64_MAX;
}
