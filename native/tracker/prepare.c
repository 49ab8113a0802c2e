#include "tracker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "process_stat.h"

/* Longer than all bounds of one preparation together. */
#define STUCK_NS (6000 * (int64_t)NS_PER_MS)

struct preparation {
	struct tracked *process;
	const char *why;
	int64_t held_ns;
	int done; /* an eventfd */
};

bool is_same(const struct tracked *process)
{
	struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };
	struct process_stat stat;

	return poll(&ended, 1, 0) == 0 && process_stat(process->pid, &stat) && stat.start == process->start;
}

/*
 * True for the child of a vfork() that has not run its program yet. Its memory is its parent's: what it registers now would
 * be taken for its own later.
 */
static bool has_parents_memory(pid_t pid)
{
	enum { KCMP_MEMORY = 1 };
	struct process_stat stat;

	return !process_stat(pid, &stat) || syscall(SYS_kcmp, pid, stat.parent, KCMP_MEMORY, 0, 0) == 0;
}

static const char *while_held(struct tracked *process, struct held *held)
{
	bool for_good = false;
	const char *why = NULL;

	/* Its number may have become another one's before the threads were held. */
	if (!is_same(process))
		return "gone";
	if (has_parents_memory(process->pid))
		return "vfork";
	if (process->uffd < 0)
		why = take_userfaultfd(held, process->pidfd, &process->uffd, &for_good);
	if (!why)
		why = register_mappings(held, process->uffd);
	if (why && process->uffd >= 0) {
		close(process->uffd);
		process->uffd = -1;
	}
	if (why && for_good)
		process->refused = why;
	return why;
}

/*
 * Runs as a thread of its own: at its end the kernel lets all threads run that could not be let go. An application is
 * stopped meanwhile, so the thread comes before the node's other work; it sleeps while it waits.
 */
static void *run(void *argument)
{
	struct preparation *work = argument;
	static struct held held;
	const struct sched_param first = { .sched_priority = 1 };
	const uint64_t one = 1;
	int64_t began;

	syscall(SYS_sched_setscheduler, 0, SCHED_RR, &first);
	began = monotonic_ns();

	work->why = hold(&held, work->process->pid);
	if (!work->why)
		work->why = while_held(work->process, &held);
	let_go(&held);
	work->held_ns = monotonic_ns() - began;
	return write(work->done, &one, sizeof one) == sizeof one ? work : NULL;
}

/* Ends this program after the longest time: a wait without an end would hold the application, and a place of the node. */
static void await_done(int done)
{
	const int64_t until = monotonic_ns() + STUCK_NS;
	struct pollfd wait = { .fd = done, .events = POLLIN };

	while (poll(&wait, 1, 100) <= 0)
		if (monotonic_ns() > until)
			_exit(fail("stuck"));
}

const char *prepare(struct tracked *process, int64_t until, int64_t *held_ns)
{
	struct preparation work = { .process = process };
	pthread_t thread;

	if (process->refused)
		return process->refused;
	if (!is_same(process))
		return "gone";
	if (monotonic_ns() > until)
		return "late";
	work.done = eventfd(0, EFD_CLOEXEC);
	if (work.done < 0)
		return "memory";
	if (pthread_create(&thread, NULL, run, &work) != 0) {
		close(work.done);
		return "memory";
	}
	await_done(work.done);
	pthread_join(thread, NULL);
	close(work.done);
	*held_ns = work.held_ns;
	return work.why;
}
