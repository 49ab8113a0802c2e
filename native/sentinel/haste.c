#include "haste.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

enum { SHARE = 20 };

/* Thousands of connections end within this time. */
static const int64_t limit_ns = 5 * (int64_t)NS_PER_MS;

/*
 * Without the privilege, the thread waits for a processor more often. It never takes the flag off, which needs more rights than to have a priority.
 * Uses the system call: see come_first().
 */
static void schedule(int policy, int priority)
{
	const struct sched_param parameters = { .sched_priority = priority };

	syscall(SYS_sched_setscheduler, 0, policy | SCHED_RESET_ON_FORK, &parameters);
}

static void pay(struct haste *haste, int64_t now)
{
	int64_t paid = (now - haste->since) / SHARE;

	haste->debt = haste->debt > paid ? haste->debt - paid : 0;
	haste->since = now;
}

void haste_wait(struct haste *haste)
{
	pay(haste, monotonic_ns());
	if (haste->debt < limit_ns)
		schedule(SCHED_FIFO, 1);
	/* Without this, a thread that has another order at once would come before those of the same priority again. */
	sched_yield();
}

void haste_begin(struct haste *haste)
{
	int64_t now = monotonic_ns();

	pay(haste, now);
	haste->began = now;
	haste_check(haste);
}

void haste_check(struct haste *haste)
{
	if (haste->began && haste->debt + monotonic_ns() - haste->began >= limit_ns)
		haste_end(haste);
}

void haste_end(struct haste *haste)
{
	int64_t now = monotonic_ns();

	pay(haste, now);
	if (haste->began)
		haste->debt += now - haste->began;
	haste->began = 0;
	schedule(SCHED_OTHER, 0);
}
