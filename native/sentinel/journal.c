#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "halt.h"
#include "log.h"
#include "number.h"
#include "sentinel.h"

enum {
	/*
	 * A CRIU of the earlier sentinel may still run; when it is done, it leaves each task stopped that it found
	 * stopped.
	 */
	AGAIN_NS = 100 * NS_PER_MS,
	RECORD_BYTES = 96 + NAME_BYTES,
};

/* A process of a stop that is kept. */
struct kept {
	struct process process;
	int64_t until;
	char name[NAME_BYTES];
};

/*
 * The only journal of the process. `left`: processes of an earlier sentinel that still have to resume, and `fenced`: those that it has
 * stopped for a fence. A process may be in both. `kept`: those of stops that continue.
 */
static struct {
	int fd, earlier; /* `earlier`: during a rewrite, the file so far; else -1 */
	char path[4096], scratch[4096];
	struct processes left, fenced;
	struct kept *kept;
	size_t kept_count, kept_taken;
	int64_t next;
	bool empty, failed, held;
} journal = { .fd = -1, .earlier = -1 };

static const char of_fence[] = " fence", of_kept[] = " kept ";

/* Reads ` kept UNTIL NAME` behind a process. False if the line has none, or there is no memory: then the process resumes. */
static bool read_kept(const char *line, struct process process)
{
	const char *at = strstr(line, of_kept);
	struct kept kept = { .process = process }, *list;
	size_t left = journal.left.count;

	if (!at || sscanf(at, " kept %" SCNd64 " %255s", &kept.until, kept.name) != 2)
		return false;
	list = reallocarray(journal.kept, journal.kept_count + 1, sizeof *list);
	if (!list)
		return false;
	journal.kept = list;
	list[journal.kept_count++] = kept;
	/* The line before says the same to earlier versions. */
	if (left > 0 && journal.left.list[left - 1].pid == process.pid && journal.left.list[left - 1].start == process.start)
		journal.left.count--;
	return true;
}

static bool read_left(void)
{
	FILE *file = fdopen(dup(journal.fd), "r");
	char line[RECORD_BYTES];
	struct process process;
	int pid;

	if (!file)
		return false;
	/* A truncated line belongs to a process that was not stopped yet. */
	while (fgets(line, sizeof line, file)) {
		if (!strchr(line, '\n') || sscanf(line, "%d %" SCNu64, &pid, &process.start) != 2 || pid <= 1)
			continue;
		process.pid = pid;
		if (!read_kept(line, process) && !processes_add(strstr(line, of_fence) ? &journal.fenced : &journal.left, process))
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
	journal.empty = !journal_has_left() && journal.kept_count == 0;
	/* A CRIU that has just passed its gate needs time to seize all tasks. */
	journal.next = monotonic_ns() + AGAIN_NS;
	if (!journal.empty)
		log_line("warn", "continues what an earlier sentinel had stopped", ",\"count\":%zu", journal.left.count + journal.fenced.count + journal.kept_count);
	return true;
}

static void note(const char *line, int length)
{
	if (write(journal.fd, line, (size_t)length) != length) {
		log_failure("the journal of stops", errno);
		journal.failed = true;
	}
	journal.empty = false;
}

void journal_note(struct process process, bool fence)
{
	char line[RECORD_BYTES];

	note(line, snprintf(line, sizeof line, "%d %" PRIu64 "%s\n", (int)process.pid, process.start, fence ? of_fence : ""));
}

void journal_note_kept(struct process process, int64_t until, const char *name)
{
	char line[RECORD_BYTES];

	/* A sentinel of an earlier version reads only this, and resumes the process. */
	journal_note(process, false);
	/* A name that would not be read again as it is: so does the next one. */
	if (strlen(name) < NAME_BYTES && !strpbrk(name, " \t\r\n\v\f"))
		note(line, snprintf(line, sizeof line, "%d %" PRIu64 "%s%" PRId64 " %s\n", (int)process.pid, process.start, of_kept, until, name));
}

bool journal_take_kept(struct process *process, int64_t *until, char *name, size_t size)
{
	const struct kept *next;

	if (journal.kept_taken == journal.kept_count) {
		free(journal.kept);
		journal.kept = NULL;
		journal.kept_taken = journal.kept_count = 0;
		return false;
	}
	next = &journal.kept[journal.kept_taken++];
	*process = next->process;
	*until = next->until;
	snprintf(name, size, "%s", next->name);
	return true;
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

bool journal_end(void)
{
	bool complete = !journal.failed && rename(journal.scratch, journal.path) == 0;

	/* The file so far has too much in it, not too little. */
	close(complete ? journal.earlier : journal.fd);
	if (!complete)
		journal.fd = journal.earlier;
	journal.earlier = -1;
	return complete;
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

bool journal_waits(struct process process)
{
	return journal.held && processes_have_this(&journal.fenced, process);
}

/* Resumes the processes of a set unless they wait for a fence or a halt has them, and drops those that run or are gone. */
static void resume(const struct sentinel *sentinel, struct processes *set)
{
	for (size_t i = set->count; i-- > 0;) {
		struct process process = set->list[i];
		struct process_stat stat;

		process_step();
		/* A traced process ignores the signal, or runs code of its tracer. Try again when the tracer has detached. */
		if (!process_stat(process.pid, &stat) || stat.start != process.start ||
		    (!strchr("Tt", stat.state) && !process_tracer(process.pid)))
			settle(set, i);
		else if (stat.state == 'T' && !journal_waits(process) && !halts_have(sentinel, process))
			process_signal(process, SIGCONT);
	}
}

int64_t journal_due(const struct sentinel *sentinel, int64_t now)
{
	if (!journal_has_left())
		return INT64_MAX;
	if (now < journal.next)
		return journal.next;
	resume(sentinel, &journal.left);
	resume(sentinel, &journal.fenced);
	journal.next = now + AGAIN_NS;
	return journal_has_left() ? journal.next : INT64_MAX;
}
