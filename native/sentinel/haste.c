#include "haste.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

/* Thousands of connections end within this time. */
static const int64_t limit_ns = 5 * (int64_t)NS_PER_MS;

/* Without the privilege, the thread waits for a processor more often. Uses the system call: see come_first(). */
static void schedule(int policy, int priority)
{
	const struct sched_param parameters = { .sched_priority = priority };

	syscall(SYS_sched_setscheduler, 0, policy, &parameters);
}

void haste_wait(void)
{
	schedule(SCHED_FIFO | SCHED_RESET_ON_FORK, 1);
}

void haste_begin(struct haste *haste)
{
	haste->until = monotonic_ns() + limit_ns;
}

void haste_check(struct haste *haste)
{
	if (haste->until && monotonic_ns() > haste->until)
		haste_end(haste);
}

void haste_end(struct haste *haste)
{
	haste->until = 0;
	schedule(SCHED_OTHER, 0);
}
