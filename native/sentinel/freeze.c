#include "freeze.h"

#include <stdlib.h>

#include "clock.h"
#include "log.h"

enum {
	/* As long as a process that begins to run in a frozen cgroup may run, with the time of two rounds. */
	AGAIN_NS = 50 * NS_PER_MS,
	/* An uninterruptible wait can last any time. */
	SETTLE_NS = 250 * NS_PER_MS,
};

struct freeze *freeze_new(char **cgroups)
{
	struct freeze *freeze = calloc(1, sizeof *freeze);

	if (!freeze)
		return NULL;
	freeze->halt.lasts = true;
	freeze->halt.cgroups = cgroups;
	return freeze;
}

static void say(struct freeze *freeze, const char *name)
{
	if (freeze->said)
		return;
	freeze->said = true;
	log_line(freeze->settled ? "info" : "warn", freeze->settled ? "a primary is stopped" : "a primary is not stopped completely yet",
		 ",\"name\":\"%s\",\"count\":%zu,\"running\":%zu,\"us\":%lld", log_safe(name), freeze->halt.signalled,
		 halt_running(&freeze->halt), (long long)((monotonic_ns() - freeze->since) / NS_PER_US));
}

static void begin(struct sentinel *sentinel, struct freeze *freeze, int64_t now)
{
	halt_begin(sentinel, &freeze->halt);
	freeze->on = true;
	freeze->settled = freeze->said = false;
	freeze->halt.signalled = 0;
	freeze->since = now;
	freeze->settle_until = now + SETTLE_NS;
	freeze->next = 0;
}

/* Later calls look once, and repeat that only for a new process. */
static void look(struct freeze *freeze, int64_t now)
{
	size_t before = freeze->halt.found;

	(void)halt_round(&freeze->halt);
	if (freeze->halt.found == before)
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
		(void)halt_more(&freeze->halt, &freeze->settled);
		now = monotonic_ns();
		if (!freeze->settled && now < freeze->settle_until) {
			freeze->next = now + halt_tick(&freeze->halt, now);
			return freeze->next;
		}
		say(freeze, name);
		/* From here on a process that never stops costs no more than one round each time. */
		freeze->settled = true;
	}
	/* However many processes a tenant has, the looks take half of a processor at most. */
	freeze->next = monotonic_ns() + (freeze->halt.took > AGAIN_NS ? freeze->halt.took : AGAIN_NS);
	return freeze->next;
}

void freeze_adopt(struct sentinel *sentinel, struct freeze *freeze)
{
	if (!freeze->on)
		begin(sentinel, freeze, monotonic_ns());
	(void)halt_round(&freeze->halt);
}

int64_t freeze_next(const struct freeze *freeze)
{
	return freeze->on ? freeze->next : 0;
}

void freeze_thaw(struct freeze *freeze, const char *name)
{
	if (!freeze->on)
		return;
	freeze->on = false;
	halt_release(&freeze->halt);
	log_line("info", "a primary runs again", ",\"name\":\"%s\",\"count\":%zu,\"ms\":%lld", log_safe(name), freeze->halt.stopped.count,
		 (long long)((monotonic_ns() - freeze->since) / NS_PER_MS));
	halt_end(&freeze->halt);
}

void freeze_free(struct freeze *freeze, const char *name)
{
	if (!freeze)
		return;
	freeze_thaw(freeze, name);
	list_free(freeze->halt.cgroups);
	free(freeze);
}
