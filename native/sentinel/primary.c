/* The primaries in force: how a version takes the place of the earlier one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_procs.h"
#include "journal.h"
#include "log.h"
#include "voting.h"

struct primary *primary_find(struct voting *voting, const char *slot)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (!primary->pending && strcmp(primary->slot, slot) == 0)
			return primary;
	return NULL;
}

struct primary *primary_of_pod(struct voting *voting, const char *name)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (!primary->gone && !primary->pending && strcmp(primary->name, name) == 0)
			return primary;
	return NULL;
}

size_t primaries_count(const struct primary *primary, bool gone)
{
	size_t count = 0;

	for (; primary; primary = primary->next)
		count += primary->gone == gone;
	return count;
}

void primary_unlink(struct voting *voting, struct primary *primary)
{
	for (struct primary **at = &voting->primaries; *at; at = &(*at)->next)
		if (*at == primary) {
			*at = primary->next;
			break;
		}
}

void primary_free(struct primary *primary)
{
	electorate_free(primary);
	deadman_free(primary->deadman);
	freeze_free(primary->freeze, primary->name);
	free(primary->slot);
	free(primary->name);
	free(primary);
}

void primaries_forget(struct voting *voting)
{
	while (voting->primaries) {
		struct primary *primary = voting->primaries;

		voting->primaries = primary->next;
		primary_free(primary);
	}
}

/*
 * Gives the primary the switch that its request asks for, or else the switch of its earlier version. The packets of a
 * primary that serves pass without a gap. False with errno.
 */
static bool arm(struct voting *voting, struct primary *told, struct primary *known)
{
	if (told->gone)
		return true;
	if (!told->netns.pid) {
		if (known) {
			told->deadman = known->deadman;
			known->deadman = NULL;
		}
		return true;
	}
	told->deadman = deadman_arm(told->netns, primary_until(told), voting->restoring);
	if (told->deadman)
		return true;
	if (!voting->restoring)
		return false;
	/* One pod must not cost the others their promises. Without a switch, its processes still stay under the fence. */
	if (errno != ESRCH) {
		log_failure("cannot arm the switch of a primary again", errno);
		return true;
	}
	/* The pod has ended since an earlier sentinel wrote this down, or only its sandbox. */
	if (!told->freeze || !cgroup_any(told->freeze->halt.cgroups)) {
		told->gone = true;
		electorate_free(told);
	}
	return true;
}

/* Lets a primary keep frozen what its earlier version has frozen. */
static void take_freeze(struct primary *to, struct primary *from)
{
	struct freeze *freeze = from->freeze;
	char **cgroups;

	if (!freeze || !to->freeze) {
		if (!to->freeze) {
			to->freeze = freeze;
			from->freeze = NULL;
		}
		return;
	}
	cgroups = freeze->halt.cgroups;
	freeze->halt.cgroups = to->freeze->halt.cgroups;
	to->freeze->halt.cgroups = cgroups;
	freeze->next = 0;
	from->freeze = to->freeze;
	to->freeze = freeze;
}

const char *primary_misfit(struct voting *voting, const struct primary *told)
{
	const struct primary *known = primary_find(voting, told->slot), *other = primary_of_pod(voting, told->name);

	if (other && other != known)
		return "another-slot";
	if (!known)
		return !told->gone && primaries_count(voting->primaries, false) >= PRIMARIES_MAX ? "too-many" : NULL;
	if (told->epoch < known->epoch || (told->epoch == known->epoch && told->version < known->version))
		return "older";
	/* That one must not run again because this one has its slot: it ends first. */
	if (!known->gone && strcmp(told->name, known->name) != 0)
		return "another-pod";
	if (told->epoch > known->epoch)
		return NULL;
	/* Answers are counted by the time-out that the voters have heard of. */
	if (told->timeout_ns != known->timeout_ns)
		return "bad-timeout";
	return told->version > known->version || known->gone || electorate_same(told, known) ? NULL : "bad-version";
}

const char *primary_acknowledge(struct voting *voting, struct primary *told)
{
	struct primary *known = primary_find(voting, told->slot);
	struct primary *pod = known && !known->gone ? known : NULL;
	int error;

	electorate_follows(told, known);
	told->serves = pod && pod->serves && pod->epoch == told->epoch;
	if (!arm(voting, told, pod))
		return "cannot arm the switch of a primary";
	if (pod)
		take_freeze(told, pod);
	if (known)
		primary_unlink(voting, known);
	told->next = voting->primaries;
	voting->primaries = told;
	if (voting_save(voting)) {
		if (known)
			primary_free(known);
		if (told->freeze && journal_holds())
			freeze_adopt(voting->sentinel, told->freeze);
		return NULL;
	}
	error = errno;
	primary_unlink(voting, told);
	if (known) {
		known->next = voting->primaries;
		voting->primaries = known;
	}
	if (pod) {
		take_freeze(pod, told);
		/* Its switch is one of the network, and stays. */
		if (!pod->deadman) {
			pod->deadman = told->deadman;
			told->deadman = NULL;
		}
		if (pod->deadman)
			pod->deadman->until = never_ns;
	}
	errno = error;
	return "cannot write down the voters";
}
