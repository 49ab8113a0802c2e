#include "freeze.h"

#include <stdlib.h>

#include "clock.h"
#include "log.h"

enum {
	/* As long as a process that begins to run in a frozen cgroup may run, with the time of a round. */
	AGAIN_NS = 50 * NS_PER_MS,
	/* An uninterruptible wait can last any time. */
	SETTLE_NS = 250 * NS_PER_MS,
};

struct freeze *freeze_new(char **cgroups)
{
	struct freeze *freeze = calloc(1, sizeof *freeze);

	if (!freeze)
		return NULL;
	freeze->hold.lasts = true;
	freeze->hold.cgroups = cgroups;
	return freeze;
}

void freeze_cgroups(struct freeze *freeze, char **cgroups)
{
	list_free(freeze->hold.cgroups);
	freeze->hold.cgroups = cgroups;
	freeze->next = 0;
}

static void say(struct freeze *freeze, const char *name)
{
	if (freeze->said)
		return;
	freeze->said = true;
	log_line(freeze->settled ? "info" : "warn", freeze->settled ? "a primary is stopped" : "a primary is not stopped completely yet",
		 ",\"name\":\"%s\",\"count\":%zu,\"running\":%zu,\"us\":%lld", log_safe(name), freeze->hold.signalled,
		 hold_running(&freeze->hold), (long long)((monotonic_ns() - freeze->since) / NS_PER_US));
}

static void begin(struct sentinel *sentinel, struct freeze *freeze, int64_t now)
{
	hold_begin(sentinel, &freeze->hold);
	freeze->on = true;
	freeze->settled = freeze->said = false;
	freeze->hold.signalled = 0;
	freeze->since = now;
	freeze->settle_until = now + SETTLE_NS;
	freeze->next = 0;
}

/* After the first time it looks once, and goes on only if it finds a new process. */
static void look(struct freeze *freeze, int64_t now)
{
	size_t before = freeze->hold.found;

	(void)hold_round(&freeze->hold);
	if (freeze->hold.found == before)
		return;
	freeze->settled = false;
	freeze->settle_until = now + SETTLE_NS;
}

int64_t freeze_due(struct sentinel *sentinel, struct freeze *freeze, const char *name, int64_t now)
{
	if (!freeze->on)
		begin(sentinel, freeze, now);
	if (now < freeze->next)
		return freeze->next;
	if (freeze->settled)
		look(freeze, now);
	if (!freeze->settled) {
		(void)hold_more(&freeze->hold, &freeze->settled);
		now = monotonic_ns();
		if (!freeze->settled && now < freeze->settle_until) {
			freeze->next = now + hold_tick(&freeze->hold, now);
			return freeze->next;
		}
		say(freeze, name);
		/* From here on a process that never stops costs no more than one round each time. */
		freeze->settled = true;
	}
	freeze->next = monotonic_ns() + AGAIN_NS;
	return freeze->next;
}

void freeze_thaw(struct freeze *freeze, const char *name)
{
	if (!freeze->on)
		return;
	freeze->on = false;
	hold_release(&freeze->hold);
	log_line("info", "a primary runs again", ",\"name\":\"%s\",\"count\":%zu,\"ms\":%lld", log_safe(name), freeze->hold.stopped.count,
		 (long long)((monotonic_ns() - freeze->since) / NS_PER_MS));
	hold_end(&freeze->hold);
}

void freeze_free(struct freeze *freeze, const char *name)
{
	if (!freeze)
		return;
	freeze_thaw(freeze, name);
	list_free(freeze->hold.cgroups);
	free(freeze);
}
