#include "awake.h"

#include <fcntl.h>
#include <unistd.h>

#include "clock.h"

enum {
	/*
	 * Keeping all processors awake costs power. A long stop saves much memory, and the steps that this shortens are
	 * a small part of it. Many short stops in a row keep the processors awake by themselves.
	 */
	BUDGET_NS = 100 * NS_PER_MS,
	NO_CONSTRAINT_US = 2000000000,
};
static const int64_t period_ns = 1000 * (int64_t)NS_PER_MS;

void awake_open(struct awake *awake)
{
	*awake = (struct awake){ .fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC) };
}

static void ask(struct awake *awake, bool on)
{
	int32_t microseconds = on ? 0 : NO_CONSTRAINT_US;

	if (write(awake->fd, &microseconds, sizeof microseconds) == (ssize_t)sizeof microseconds)
		awake->on = on;
}

int64_t awake_while(struct awake *awake, bool wanted, int64_t now)
{
	bool may;

	if (awake->fd < 0 || (!wanted && !awake->on))
		return INT64_MAX;
	if (awake->on)
		awake->used += now - awake->since;
	awake->since = now;
	if (now - awake->period >= period_ns) {
		awake->period = now;
		awake->used = 0;
	}
	may = wanted && awake->used < BUDGET_NS;
	if (may != awake->on)
		ask(awake, may);
	return may ? now + BUDGET_NS - awake->used : INT64_MAX;
}
