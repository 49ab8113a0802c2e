/* The requests about primaries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "number.h"
#include "voting.h"

static struct primary *find(struct voting *voting, const char *slot)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (strcmp(primary->slot, slot) == 0)
			return primary;
	return NULL;
}

static struct primary *find_pod(struct voting *voting, const char *name)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (!primary->gone && strcmp(primary->name, name) == 0)
			return primary;
	return NULL;
}

static size_t count_of(const struct primary *primary, bool gone)
{
	size_t count = 0;

	for (; primary; primary = primary->next)
		count += primary->gone == gone;
	return count;
}

static void unlink_primary(struct voting *voting, struct primary *primary)
{
	for (struct primary **at = &voting->primaries; *at; at = &(*at)->next)
		if (*at == primary) {
			*at = primary->next;
			break;
		}
}

static void forget(struct primary *primary)
{
	electorate_free(primary);
	deadman_free(primary->deadman);
	free(primary->slot);
	free(primary->name);
	free(primary);
}

void primaries_forget(struct voting *voting)
{
	while (voting->primaries) {
		struct primary *primary = voting->primaries;

		voting->primaries = primary->next;
		forget(primary);
	}
}

/*
 * Gives the primary the switch that the request asks for, or else the switch of its earlier version. The packets of a
 * primary that serves pass without a gap. False with errno.
 */
static bool arm(struct voting *voting, struct primary *told, struct primary *known, const struct request *request)
{
	int64_t pid, start;
	struct process process;

	if (!request_value(request, "netns")) {
		if (known && strcmp(known->name, told->name) == 0) {
			told->deadman = known->deadman;
			known->deadman = NULL;
		}
		return true;
	}
	errno = EINVAL;
	if (!parse_number(request_value(request, "netns"), PID_MAX, &pid) || pid == 0 || !request_value(request, "start") ||
	    !parse_number(request_value(request, "start"), INT64_MAX, &start))
		return false;
	process = (struct process){ .pid = (pid_t)pid, .start = (uint64_t)start };
	told->deadman = deadman_arm(process, primary_until(told), voting->restoring);
	return told->deadman != NULL;
}

/* Returns why the request does not fit what this sentinel has acknowledged; NULL: it fits. */
static const char *misfit(struct voting *voting, const struct primary *told, const struct primary *known)
{
	const struct primary *other = find_pod(voting, told->name);

	if (other && other != known)
		return "another-slot";
	if (!known)
		return !told->gone && count_of(voting->primaries, false) >= PRIMARIES_MAX ? "too-many" : NULL;
	if (told->epoch < known->epoch || (told->epoch == known->epoch && told->version < known->version))
		return "older";
	if (told->epoch > known->epoch)
		return NULL;
	/* Answers are counted by the time-out that the voters have heard of. */
	if (told->timeout_ns != known->timeout_ns)
		return "bad-timeout";
	return told->version > known->version || known->gone || electorate_same(told, known) ? NULL : "bad-version";
}

static const char *read_primary(struct primary *told, const struct request *request)
{
	int64_t timeout_ms;

	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &told->epoch))
		return "bad-epoch";
	if (!parse_number(request_value(request, "version"), INT64_MAX, &told->version))
		return "bad-version";
	if (!parse_number(request_value(request, "timeout"), DEADLINE_MS_MAX, &timeout_ms) || timeout_ms < BEATS)
		return "bad-timeout";
	told->timeout_ns = timeout_ms * NS_PER_MS;
	told->number = slot_number(told->slot);
	return electorate_read(told, request) ? NULL : "bad-voter";
}

void primary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *name = request_value(request, "name"), *slot = request_value(request, "slot"), *wrong;
	struct primary *known = find(voting, slot), *told = calloc(1, sizeof *told);

	if (!told || !(told->name = strdup(name)) || !(told->slot = strdup(slot))) {
		client_reply_error(client, request, "primary", ENOMEM);
		if (told)
			forget(told);
		return;
	}
	told->gone = request_value(request, "gone") != NULL;
	wrong = strlen(slot) > NAME_BYTES ? "bad-slot" : read_primary(told, request);
	/* Only its own file tells the sentinel what is gone. */
	if (!wrong && told->gone && !voting->restoring)
		wrong = "unknown-key";
	if (!wrong)
		wrong = misfit(voting, told, known);
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		forget(told);
		return;
	}
	if (told->gone)
		electorate_free(told);
	else
		electorate_follows(told, known);
	told->serves = known && !known->gone && known->serves && known->epoch == told->epoch;
	if (!arm(voting, told, known, request)) {
		/* The pod has ended since an earlier sentinel wrote this down. */
		if (voting->restoring && errno == ESRCH) {
			told->gone = true;
			electorate_free(told);
		} else {
			client_reply_error(client, request, "cannot arm the switch of a primary", errno);
			forget(told);
			return;
		}
	}
	if (known)
		unlink_primary(voting, known);
	told->next = voting->primaries;
	voting->primaries = told;
	if (!voting_save(voting)) {
		int error = errno;

		unlink_primary(voting, told);
		if (known) {
			known->next = voting->primaries;
			voting->primaries = known;
			/* Its switch is one of the network, and stays. */
			if (!known->deadman) {
				known->deadman = told->deadman;
				told->deadman = NULL;
			}
		}
		forget(told);
		client_reply_error(client, request, "cannot write down the voters", error);
		return;
	}
	if (known)
		forget(known);
	/* It serves as soon as its voters have answered. */
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (primary_asks(told, peer))
			peer->next_beat = 0;
	client_reply(client, request, "ok", NULL);
}

/* The oldest ones are last. A late request about a pod that has been gone for so long is not to be expected. */
static void drop_oldest(struct voting *voting)
{
	struct primary *oldest = NULL;

	if (count_of(voting->primaries, true) <= GONE_MAX)
		return;
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (primary->gone)
			oldest = primary;
	unlink_primary(voting, oldest);
	forget(oldest);
}

void unprimary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct primary *primary = find_pod(voting, request_value(request, "name"));

	if (primary) {
		if (primary->deadman)
			deadman_disarm(primary->deadman);
		primary->deadman = NULL;
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
	struct primary *primary = find_pod(voting, request_value(request, "name"));
	int64_t epoch, sent, now = monotonic_ns();

	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &epoch) ||
	    !parse_number(request_value(request, "sent"), INT64_MAX, &sent) || sent > now) {
		client_reply(client, request, "refused", "bad-time");
		return;
	}
	if (!primary || primary->epoch != epoch) {
		client_reply(client, request, "gone", NULL);
		return;
	}
	for (size_t i = 0; i < primary->voter_count; i++)
		if (!primary->voters[i].node)
			primary_take(primary, i, sent);
	client_reply(client, request, "ok", NULL);
}
