#include "hold.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_procs.h"
#include "clock.h"
#include "journal.h"

enum {
	SHORT_TICK_NS = NS_PER_MS / 10,
	SHORT_TICKS_NS = 2 * NS_PER_MS,
	TICK_NS = NS_PER_MS / 2,
	ROUNDS_AT_ONCE = 8,
	TIDY_LEAST = 64,
};

char **list_read(const struct request *request, const char *key)
{
	char **list = calloc(request->count + 1, sizeof *list);
	size_t count = 0;

	for (size_t i = 0; list && i < request->count; i++)
		if (strcmp(request->fields[i].key, key) == 0 && !(list[count++] = strdup(request->fields[i].value))) {
			list_free(list);
			return NULL;
		}
	return list;
}

void list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

int64_t hold_tick(const struct hold *hold, int64_t now)
{
	return now - hold->began < SHORT_TICKS_NS ? SHORT_TICK_NS : TICK_NS;
}

void hold_begin(struct sentinel *sentinel, struct hold *hold)
{
	hold->sentinel = sentinel;
	hold->began = hold->last = monotonic_ns();
	hold->over = false;
	hold->next = sentinel->holds;
	sentinel->holds = hold;
}

static bool have(const struct processes *set, struct process process)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->list[i].pid == process.pid && set->list[i].start == process.start)
			return true;
	return false;
}

/* True if a hold other than `but` keeps the process stopped. */
static bool is_held(const struct sentinel *sentinel, const struct hold *but, struct process process)
{
	for (const struct hold *hold = sentinel->holds; hold; hold = hold->next)
		if (hold != but && !hold->over && have(&hold->stopped, process))
			return true;
	return false;
}

/* Records all that the next sentinel has to resume. */
static void write_down(const struct sentinel *sentinel)
{
	if (!sentinel->holds && journal_clear())
		return;
	if (!journal_begin())
		return;
	for (const struct hold *hold = sentinel->holds; hold; hold = hold->next)
		for (size_t i = 0; i < hold->stopped.count; i++)
			journal_note(hold->stopped.list[i]);
	journal_end();
}

static void tell_to_stop(struct hold *hold, struct process process)
{
	int64_t now = monotonic_ns();

	if (process_signal(process, SIGSTOP) != 0)
		return;
	if (hold->signalled++ == 0)
		hold->began = now;
	hold->last = now;
}

/* Called for each process of a round. False with errno. */
static bool meet(void *context, pid_t pid)
{
	struct hold *hold = context;
	struct process_stat stat;
	struct process process;
	bool known, stands, left;

	if (processes_have(&hold->excluded, pid))
		return true;
	if (!hold->lasts && (processes_have(&hold->stopped, pid) || processes_have(&hold->others, pid)))
		return true;
	/* A process is also a zombie when its first thread has ended before the others. A fence stops those. */
	if (!process_stat(pid, &stat) || stat.state == 'X' || (stat.state == 'Z' && !hold->lasts))
		return true;
	/*
	 * The CRIU of a dead sentinel may still work on this process. The kernel would report a signal to CRIU, which
	 * takes a signal that it has not sent itself for the end of the process, and leaves its own code (the parasite)
	 * in it.
	 */
	if (stat.state == 't' && !hold->lasts) {
		errno = EBUSY;
		return false;
	}
	process = (struct process){ .pid = pid, .start = stat.start };
	known = have(&hold->stopped, process);
	stands = stat.state == 'T' || stat.state == 't';
	if (known && stands)
		return true;
	left = !known && journal_take(process);
	/* Another program stopped this process for its own reason, so we must not resume it. A tracer may resume it soon. */
	if (stands && !left && !is_held(hold->sentinel, hold, process)) {
		hold->met += !hold->lasts;
		errno = E2BIG;
		return stat.state == 't' || processes_add(&hold->others, process);
	}
	hold->met += !known || stat.state != 'Z';
	hold->found += !known;
	/* What a fence cannot record stays stopped for ever. */
	if (!known && !processes_add(&hold->stopped, process) && !hold->lasts) {
		errno = E2BIG;
		return false;
	}
	if (stands)
		return true;
	if (!known)
		journal_note(process);
	tell_to_stop(hold, process);
	return true;
}

/* A fence lasts for any time, and processes come and go below it. */
static void tidy(struct hold *hold)
{
	size_t kept = 0;

	for (size_t i = 0; i < hold->stopped.count; i++) {
		struct process process = hold->stopped.list[i];
		struct process_stat stat;

		if (process_stat(process.pid, &stat) && stat.start == process.start)
			hold->stopped.list[kept++] = process;
	}
	hold->stopped.count = kept;
	hold->tidy_at = 2 * kept + TIDY_LEAST;
	write_down(hold->sentinel);
}

int hold_round(struct hold *hold)
{
	if (hold->lasts) {
		hold->others.count = 0;
		if (hold->stopped.count >= hold->tidy_at)
			tidy(hold);
	}
	for (size_t i = 0; hold->cgroups[i]; i++)
		/* The cgroup of a container is removed with it, and comes back with the next one. */
		if (!cgroup_each(hold->cgroups[i], meet, hold) && !hold->lasts)
			return errno;
	return 0;
}

int hold_more(struct hold *hold, bool *complete)
{
	*complete = false;
	for (int round = 0; round < ROUNDS_AT_ONCE && !*complete; round++) {
		bool standing = hold_running(hold) == 0;
		size_t before = hold->met;
		int error = hold_round(hold);

		if (error)
			return error;
		*complete = standing && hold->met == before;
	}
	return 0;
}

size_t hold_running(const struct hold *hold)
{
	size_t running = 0;

	for (size_t i = 0; i < hold->stopped.count; i++)
		running += !process_stopped(hold->stopped.list[i]);
	return running;
}

/*
 * Sends SIGCONT even if it was sent before: a CRIU that found a task stopped leaves it stopped at its end, even if the
 * task was resumed in the meantime.
 */
void hold_release(struct hold *hold)
{
	hold->over = true;
	holds_look(hold->sentinel);
	/* The last one first: a parent should not find its children still stopped. */
	for (size_t i = hold->stopped.count; i-- > 0;) {
		struct process process = hold->stopped.list[i];
		struct process_stat stat;

		if (is_held(hold->sentinel, hold, process))
			continue;
		/* A stop ends after its CRIU; a fence may end before the CRIU of an earlier sentinel does. */
		if (hold->lasts && process_stat(process.pid, &stat) && stat.state == 't')
			journal_leave(process);
		else
			process_signal(process, SIGCONT);
	}
}

void hold_end(struct hold *hold)
{
	struct sentinel *sentinel = hold->sentinel;

	for (struct hold **at = &sentinel->holds; *at; at = &(*at)->next)
		if (*at == hold) {
			*at = hold->next;
			break;
		}
	processes_free(&hold->stopped);
	processes_free(&hold->others);
	processes_free(&hold->excluded);
	write_down(sentinel);
}

bool holds_resume(struct sentinel *sentinel, struct process process)
{
	return !is_held(sentinel, NULL, process) && process_signal(process, SIGCONT) == 0;
}

void holds_look(struct sentinel *sentinel)
{
	for (struct hold *hold = sentinel->holds; hold; hold = hold->next)
		if (hold->lasts && !hold->over)
			hold_round(hold);
}

bool holds_fence(struct sentinel *sentinel, struct process process)
{
	for (struct hold *hold = sentinel->holds; hold; hold = hold->next) {
		if (!hold->lasts || hold->over)
			continue;
		if (have(&hold->stopped, process))
			return true;
		/* The program that has stopped it leaves it to us now. */
		if (have(&hold->others, process)) {
			journal_note(process);
			return processes_add(&hold->stopped, process);
		}
	}
	return false;
}

struct search {
	const struct sentinel *sentinel;
	bool found;
};

static bool meet_fenced(void *context, pid_t pid)
{
	struct search *search = context;

	for (const struct hold *hold = search->sentinel->holds; hold && !search->found; hold = hold->next)
		search->found = hold->lasts && !hold->over &&
				(processes_have(&hold->stopped, pid) || processes_have(&hold->others, pid));
	return !search->found;
}

bool holds_fence_any(struct sentinel *sentinel, char *const *cgroups)
{
	struct search search = { .sentinel = sentinel };

	holds_look(sentinel);
	for (; *cgroups && !search.found; cgroups++)
		(void)cgroup_each(*cgroups, meet_fenced, &search);
	return search.found;
}

int64_t holds_due(struct sentinel *sentinel, int64_t now)
{
	bool left = journal_has_left();
	int64_t next = journal_due(now);

	if (left && !journal_has_left())
		write_down(sentinel);
	return next;
}
