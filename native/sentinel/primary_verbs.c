/* The requests about primaries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_procs.h"
#include "clock.h"
#include "number.h"
#include "verbs.h"
#include "voting.h"

static const char *read_cgroups(struct primary *told, const struct request *request)
{
	char **cgroups;
	size_t count = 0;

	if (!request_value(request, "cgroup"))
		return NULL;
	cgroups = request_list(request, "cgroup");
	told->freeze = cgroups ? freeze_new(cgroups) : NULL;
	if (!told->freeze) {
		list_free(cgroups);
		return "memory";
	}
	for (; cgroups[count]; count++)
		if (!cgroup_path_is_inside(cgroups[count]) || strlen(cgroups[count]) > CGROUP_BYTES)
			return "bad-cgroup";
	return count > CGROUPS_MAX ? "bad-cgroup" : NULL;
}

static const char *read_primary(struct primary *told, const struct request *request, bool restoring)
{
	int64_t timeout_ms;

	if (strlen(told->slot) > NAME_BYTES)
		return "bad-slot";
	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &told->epoch))
		return "bad-epoch";
	if (!parse_number(request_value(request, "version"), INT64_MAX, &told->version))
		return "bad-version";
	if (!parse_number(request_value(request, "timeout"), DEADLINE_MS_MAX, &timeout_ms) || timeout_ms < BEATS)
		return "bad-timeout";
	told->timeout_ns = timeout_ms * NS_PER_MS;
	told->number = slot_number(told->slot);
	if (!electorate_read(told, request))
		return "bad-voter";
	told->gone = request_value(request, "gone") != NULL;
	if (told->gone)
		electorate_free(told);
	/* Only its own file tells the sentinel what is gone. */
	return told->gone && !restoring ? "unknown-key" : read_cgroups(told, request);
}

/* True if a healthy primary would stop, were these voters in force at once. */
static bool must_wait(struct voting *voting, struct primary *told)
{
	const struct primary *known = primary_find(voting, told->slot);

	if (!known || known->gone || known->epoch != told->epoch)
		return true;
	if (known->version == told->version)
		return false;
	electorate_follows(told, known);
	return monotonic_ns() >= primary_until(told);
}

static void put_into_force(struct client *client, const struct request *request, struct primary *told)
{
	struct voting *voting = client->sentinel->voting;
	const char *what = NULL;

	if (!voting->restoring && must_wait(voting, told)) {
		pending_begin(client, request, told);
	} else {
		what = primary_acknowledge(voting, told);
		if (!what)
			client_reply(client, request, "ok", NULL);
	}
	if (what) {
		client_reply_error(client, request, what, errno);
		primary_free(told);
		return;
	}
	/* It serves as soon as its voters have answered. */
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (primary_asks(told, peer))
			peer->next_beat = 0;
}

void primary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *wrong;
	struct primary *told = calloc(1, sizeof *told);

	if (!told || !(told->name = strdup(request_value(request, "name"))) || !(told->slot = strdup(request_value(request, "slot")))) {
		client_reply_error(client, request, "primary", ENOMEM);
		if (told)
			primary_free(told);
		return;
	}
	if (request_value(request, "netns") && !verb_process(client, request, "netns", "start", &told->netns)) {
		primary_free(told);
		return;
	}
	wrong = read_primary(told, request, voting->restoring);
	if (!wrong)
		wrong = primary_misfit(voting, told);
	if (!wrong) {
		put_into_force(client, request, told);
		return;
	}
	client_reply(client, request, "refused", wrong);
	primary_free(told);
}

/* The oldest ones are last. A late request about a pod that has been gone for so long is not to be expected. */
static void drop_oldest(struct voting *voting)
{
	struct primary *oldest = NULL;

	if (primaries_count(voting->primaries, true) <= GONE_MAX)
		return;
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (primary->gone)
			oldest = primary;
	primary_unlink(voting, oldest);
	primary_free(oldest);
}

void unprimary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *name = request_value(request, "name");
	struct primary *primary = primary_of_pod(voting, name);
	int error = 0;

	pending_end(voting, name, "ended");
	if (primary) {
		/*
		 * Answers of its processes may wait in the kernel, from after its voters had let go of it. They would leave as soon
		 * as the packets pass, although another pod has the slot.
		 */
		if (primary->deadman && request_value(request, "shut"))
			deadman_free(primary->deadman);
		else if (primary->deadman)
			error = deadman_disarm(primary->deadman);
		if (error) {
			client_reply_error(client, request, "cannot remove the switch of a primary yet", error);
			return;
		}
		primary->deadman = NULL;
		freeze_free(primary->freeze, primary->name);
		primary->freeze = NULL;
		primary->gone = true;
		electorate_free(primary);
		drop_oldest(voting);
		if (!voting_save(voting)) {
			client_reply_error(client, request, "cannot write down the end of a primary", errno);
			return;
		}
	}
	client_reply(client, request, "ok", NULL);
}

void answered_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *name = request_value(request, "name");
	int64_t epoch, sent, now = monotonic_ns();
	bool found = false;
	uint64_t run;

	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &epoch) ||
	    !parse_number(request_value(request, "sent"), INT64_MAX, &sent) || sent > now) {
		client_reply(client, request, "refused", "bad-time");
		return;
	}
	if (!parse_run(request_value(request, "run"), &run)) {
		client_reply(client, request, "refused", "bad-run");
		return;
	}
	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		if (primary->gone || primary->epoch != epoch || strcmp(primary->name, name) != 0)
			continue;
		found = true;
		for (size_t i = 0; i < primary->voter_count; i++)
			if (voter_is_api_server(&primary->voters[i]) && primary->voters[i].run == run)
				primary_take(primary, i, sent);
	}
	client_reply(client, request, found ? "ok" : "absent", NULL);
}
