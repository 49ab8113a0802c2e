/* Long because all that stops and resumes processes works on one list of halts. */
#include "halt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cgroup_procs.h"
#include "clock.h"
#include "journal.h"

enum {
	SHORT_TICK_NS = NS_PER_MS / 10,
	SHORT_TICKS_NS = 2 * NS_PER_MS,
	TICK_NS = NS_PER_MS / 2,
	ROUNDS_AT_ONCE = 8,
	ROUNDS_NS = 10 * NS_PER_MS,
	TIDY_LEAST = 64,
};

int64_t halt_tick(const struct halt *halt, int64_t now)
{
	int64_t tick = now - halt->began < SHORT_TICKS_NS ? SHORT_TICK_NS : TICK_NS;

	return tick > halt->took ? tick : halt->took;
}

void halt_begin(struct sentinel *sentinel, struct halt *halt)
{
	halt->sentinel = sentinel;
	halt->began = halt->last = monotonic_ns();
	halt->over = false;
	halt->next = sentinel->halts;
	sentinel->halts = halt;
}

/* True if a halt other than `but` keeps the process stopped. */
static bool is_halted(const struct sentinel *sentinel, const struct halt *but, struct process process)
{
	for (struct halt *halt = sentinel->halts; halt; halt = halt->next)
		if (halt != but && !halt->over && processes_have_this(&halt->stopped, process))
			return true;
	return false;
}

/* Records all that the next sentinel has to resume. False if that is not possible: the record stays as it is then. */
static bool write_down(const struct sentinel *sentinel)
{
	if (!sentinel->halts && journal_clear())
		return true;
	if (!journal_begin())
		return false;
	for (const struct halt *halt = sentinel->halts; halt; halt = halt->next)
		for (size_t i = 0; i < halt->stopped.count; i++) {
			process_step();
			if (halt->kept && !halt->over)
				journal_note_kept(halt->stopped.list[i], halt->until, halt->kept);
			else
				journal_note(halt->stopped.list[i], halt->lasts);
		}
	return journal_end();
}

bool halt_keep(struct halt *halt, const char *name, int64_t until)
{
	halt->kept = name;
	halt->until = until;
	return write_down(halt->sentinel);
}

bool halts_have(const struct sentinel *sentinel, struct process process)
{
	return is_halted(sentinel, NULL, process);
}

static void tell_to_stop(struct halt *halt, struct process process)
{
	int64_t now = monotonic_ns();

	if (process_signal(process, SIGSTOP) != 0)
		return;
	if (halt->signalled++ == 0)
		halt->began = now;
	halt->last = now;
}

/*
 * The CRIU of a dump may run its own code (the parasite) in a process that it has seized. The kernel would report a signal to
 * CRIU, which takes a signal that it has not sent itself for the end of the process, and leaves that code in it. CRIU leaves a
 * process stopped that it found stopped. A debugger in the pod is stopped itself.
 */
static bool is_at_work(struct halt *halt, pid_t pid)
{
	pid_t tracer = process_tracer(pid);

	return tracer && !processes_have(&halt->stopped, tracer) && !processes_have(&halt->others, tracer);
}

/* Called for each process of a round. False with errno. */
static bool meet(void *context, pid_t pid)
{
	struct halt *halt = context;
	struct process_stat stat;
	struct process process;
	bool known, stands, left;

	process_step();
	if (processes_have(&halt->excluded, pid))
		return true;
	if (!halt->lasts && (processes_have(&halt->stopped, pid) || processes_have(&halt->others, pid)))
		return true;
	/* A process is also a zombie when its first thread has ended before the others. A fence stops those. */
	if (!process_stat(pid, &stat) || stat.state == 'X' || (stat.state == 'Z' && !halt->lasts))
		return true;
	/* The CRIU of a dead sentinel may still work on this process. */
	if (stat.state == 't' && !halt->lasts) {
		errno = EBUSY;
		return false;
	}
	process = (struct process){ .pid = pid, .start = stat.start };
	known = processes_have_this(&halt->stopped, process);
	stands = stat.state == 'T' || stat.state == 't';
	if (known && stands)
		return true;
	left = !known && journal_take(process, halt->lasts);
	/* Another program stopped this process for its own reason, so we must not resume it. A tracer may resume it soon. */
	if (stands && !left && !is_halted(halt->sentinel, halt, process)) {
		halt->met += !halt->lasts;
		errno = E2BIG;
		return stat.state == 't' || processes_add(&halt->others, process);
	}
	halt->met += !known || stat.state != 'Z';
	halt->found += !known;
	/* A process that a fence cannot record stays stopped for ever. */
	if (!known && !processes_add(&halt->stopped, process) && !halt->lasts) {
		errno = E2BIG;
		return false;
	}
	if (stands)
		return true;
	if (!known)
		journal_note(process, halt->lasts);
	if (!halt->lasts || !is_at_work(halt, pid))
		tell_to_stop(halt, process);
	return true;
}

/* A fence lasts for any time, and processes come and go below it. */
static void tidy(struct halt *halt)
{
	size_t kept = 0;

	for (size_t i = 0; i < halt->stopped.count; i++) {
		struct process process = halt->stopped.list[i];
		struct process_stat stat;

		process_step();
		if (process_stat(process.pid, &stat) && stat.start == process.start)
			halt->stopped.list[kept++] = process;
	}
	halt->stopped.count = kept;
	halt->tidy_at = 2 * kept + TIDY_LEAST;
	write_down(halt->sentinel);
}

int halt_round(struct halt *halt)
{
	int64_t from = monotonic_ns();

	if (halt->lasts) {
		halt->others.count = 0;
		if (halt->stopped.count >= halt->tidy_at)
			tidy(halt);
	}
	for (size_t i = 0; halt->cgroups[i]; i++)
		/* The cgroup of a container is removed with it, and comes back with the next one. */
		if (!cgroup_each(halt->cgroups[i], meet, halt) && !halt->lasts)
			return errno;
	halt->took = monotonic_ns() - from;
	return 0;
}

int halt_more(struct halt *halt, bool *complete)
{
	int64_t enough = monotonic_ns() + ROUNDS_NS;

	*complete = false;
	for (int round = 0; round < ROUNDS_AT_ONCE && !*complete && (round == 0 || monotonic_ns() < enough); round++) {
		bool standing = halt_running(halt) == 0;
		size_t before = halt->met;
		int error = halt_round(halt);

		if (error)
			return error;
		*complete = standing && halt->met == before;
	}
	return 0;
}

size_t halt_running(const struct halt *halt)
{
	size_t running = 0;

	for (size_t i = 0; i < halt->stopped.count; i++)
		running += !process_stopped(halt->stopped.list[i]);
	return running;
}

/*
 * Sends SIGCONT even if it was sent before: a CRIU that found a task stopped leaves it stopped at its end, even if the
 * task was resumed in the meantime.
 */
void halt_release(struct halt *halt)
{
	halt->over = true;
	halts_look(halt->sentinel);
	/* The last one first: a parent should not find its children still stopped. */
	for (size_t i = halt->stopped.count; i-- > 0;) {
		struct process process = halt->stopped.list[i];

		/* It waits for a fence of an earlier sentinel, which this one does not know yet. */
		if (is_halted(halt->sentinel, halt, process) || journal_waits(process))
			continue;
		/* A stop ends after its CRIU; a fence may end before the CRIU of an earlier sentinel does. */
		if ((halt->lasts || halt->recovered) && is_at_work(halt, process.pid))
			journal_leave(process);
		else
			process_signal(process, SIGCONT);
	}
}

void halt_end(struct halt *halt)
{
	struct sentinel *sentinel = halt->sentinel;

	for (struct halt **at = &sentinel->halts; *at; at = &(*at)->next)
		if (*at == halt) {
			*at = halt->next;
			break;
		}
	processes_free(&halt->stopped);
	processes_free(&halt->others);
	processes_free(&halt->excluded);
	write_down(sentinel);
}

bool halts_resume(struct sentinel *sentinel, struct process process)
{
	return !halts_have(sentinel, process) && process_signal(process, SIGCONT) == 0;
}

bool halts_look(struct sentinel *sentinel)
{
	bool any = false;

	for (struct halt *halt = sentinel->halts; halt; halt = halt->next)
		if (halt->lasts && !halt->over) {
			halt_round(halt);
			any = true;
		}
	return any;
}

bool halts_fence(struct sentinel *sentinel, struct process process)
{
	for (struct halt *halt = sentinel->halts; halt; halt = halt->next) {
		if (!halt->lasts || halt->over)
			continue;
		if (processes_have_this(&halt->stopped, process))
			return true;
		/* The program that has stopped it leaves it to us now. */
		if (processes_have_this(&halt->others, process)) {
			journal_note(process, true);
			return processes_add(&halt->stopped, process);
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

	process_step();
	for (struct halt *halt = search->sentinel->halts; halt && !search->found; halt = halt->next)
		search->found = halt->lasts && !halt->over &&
				(processes_have(&halt->stopped, pid) || processes_have(&halt->others, pid));
	return !search->found;
}

bool halts_fence_any(struct sentinel *sentinel, char *const *cgroups)
{
	struct search search = { .sentinel = sentinel };

	if (!halts_look(sentinel))
		return false;
	for (; *cgroups && !search.found; cgroups++)
		(void)cgroup_each(*cgroups, meet_fenced, &search);
	return search.found;
}

int64_t halts_due(struct sentinel *sentinel, int64_t now)
{
	bool left = journal_has_left();
	int64_t next = journal_due(sentinel, now);

	if (left && !journal_has_left())
		write_down(sentinel);
	return next;
}
