#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "voting.h"

/* Beats in a time-out: as many may be lost in a row as fit into two thirds of it. */
enum { BEATS = 12 };

static struct primary *find(struct voting *voting, const char *name)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (strcmp(primary->name, name) == 0)
			return primary;
	return NULL;
}

static bool asks(const struct primary *primary, const struct peer *peer)
{
	for (size_t i = 0; i < primary->voter_count; i++)
		if (run_is(&primary->voters[i], peer))
			return true;
	return false;
}

int64_t primaries_interval(const struct voting *voting, const struct peer *peer)
{
	int64_t shortest = INT64_MAX;

	for (const struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (primary->timeout_ns / BEATS < shortest && asks(primary, peer))
			shortest = primary->timeout_ns / BEATS;
	return shortest;
}

static void news_of(const struct primary *primary, struct message *message)
{
	message_begin(message, "-", primary->serves ? "serves" : "stops");
	message_text(message, "name", primary->name);
	message_number(message, "epoch", primary->epoch);
	message_end(message);
}

static void tell(struct voting *voting, const struct primary *primary)
{
	struct message message;

	news_of(primary, &message);
	clients_tell(voting->sentinel, &message);
}

void primaries_tell(const struct voting *voting, struct client *client)
{
	for (const struct primary *primary = voting->primaries; primary; primary = primary->next) {
		struct message message;

		news_of(primary, &message);
		client_send(client, &message);
	}
}

static int64_t until(const struct primary *primary)
{
	return serves_until(primary->sets, primary->set_count, primary->sent, primary->timeout_ns);
}

int64_t primaries_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		int64_t end = until(primary);

		if (primary->serves != (now < end)) {
			primary->serves = !primary->serves;
			log_line(primary->serves ? "info" : "warn", primary->serves ? "a primary serves" : "a primary has too few answers",
				 ",\"name\":\"%s\",\"epoch\":%" PRId64, log_safe(primary->name), primary->epoch);
			tell(voting, primary);
		}
		/* Not at each answer: the end moves on by this much from beat to beat. */
		if (primary->deadman && now < end && end - primary->deadman->until >= primary->timeout_ns / BEATS)
			deadman_renew(primary->deadman, end);
		if (primary->serves && end < next)
			next = end;
	}
	return next;
}

static void take(struct primary *primary, size_t voter, int64_t sent)
{
	if (!primary->voters[voter].refused && sent > primary->sent[voter])
		primary->sent[voter] = sent;
}

size_t primaries_claim(const struct voting *voting, const struct peer *peer, size_t skip, struct frame *beat)
{
	size_t all = 0;

	for (const struct primary *primary = voting->primaries; primary; primary = primary->next) {
		if (!asks(primary, peer) || all++ < skip || beat->count == CLAIMS_MAX)
			continue;
		beat->claims[beat->count++] = (struct claim){ .slot = primary->number, .epoch = (uint32_t)primary->epoch };
	}
	return all;
}

static const struct claim *claim_of(const struct frame *frame, const struct primary *primary)
{
	for (size_t i = 0; i < frame->count; i++)
		if (frame->claims[i].slot == primary->number && frame->claims[i].epoch == primary->epoch)
			return &frame->claims[i];
	return NULL;
}

void primaries_answered(struct voting *voting, const struct peer *peer, const struct frame *answer, int64_t now)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		const struct claim *claim = claim_of(answer, primary);

		for (size_t i = 0; claim && i < primary->voter_count; i++) {
			if (!run_is(&primary->voters[i], peer))
				continue;
			/* Its promise lasts as long as the epoch. */
			if (claim->refused)
				primary->voters[i].refused = true;
			take(primary, i, answer->sent);
		}
	}
	primaries_due(voting, now);
}

static size_t count_of(const struct primary *primary)
{
	size_t count = 0;

	for (; primary; primary = primary->next)
		count++;
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

/*
 * Gives the primary the switch that the request asks for, or else the switch of its earlier version. The packets of a primary that serves pass
 * without a gap. False with errno.
 */
static bool arm(struct voting *voting, struct primary *told, struct primary *known, const struct request *request)
{
	int64_t pid, start;
	struct process process;

	if (!request_value(request, "netns")) {
		if (known) {
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
	told->deadman = deadman_arm(process, until(told), voting->restoring);
	return told->deadman != NULL;
}

void primary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *name = request_value(request, "name"), *slot = request_value(request, "slot"), *wrong = NULL;
	struct primary *known = find(voting, name), *told = calloc(1, sizeof *told);
	int64_t timeout_ms;

	if (!told || !(told->name = strdup(name)) || !(told->slot = strdup(slot))) {
		client_reply_error(client, request, "primary", ENOMEM);
		if (told)
			forget(told);
		return;
	}
	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &told->epoch))
		wrong = "bad-epoch";
	else if (!parse_number(request_value(request, "version"), INT64_MAX, &told->version))
		wrong = "bad-version";
	else if (!parse_number(request_value(request, "timeout"), DEADLINE_MS_MAX, &timeout_ms) || timeout_ms < BEATS)
		wrong = "bad-timeout";
	else if (!electorate_read(told, request))
		wrong = "bad-voter";
	else if (known && strcmp(known->slot, slot) == 0 &&
		 (known->epoch > told->epoch || (known->epoch == told->epoch && known->version > told->version)))
		/* An acknowledged version stays in force. */
		wrong = "older";
	else if (!known && count_of(voting->primaries) >= PRIMARIES_MAX)
		wrong = "too-many";
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		forget(told);
		return;
	}
	told->number = slot_number(slot);
	told->timeout_ns = timeout_ms * NS_PER_MS;
	told->serves = known && known->serves;
	electorate_follows(told, known && strcmp(known->slot, slot) == 0 ? known : NULL);
	if (!arm(voting, told, known, request)) {
		client_reply_error(client, request, "cannot arm the switch of a primary", errno);
		forget(told);
		return;
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
		if (asks(told, peer))
			peer->next_beat = 0;
	client_reply(client, request, "ok", NULL);
}

void unprimary_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct primary *primary = find(voting, request_value(request, "name"));

	if (primary) {
		unlink_primary(voting, primary);
		if (primary->deadman)
			deadman_disarm(primary->deadman);
		primary->deadman = NULL;
		forget(primary);
		(void)voting_save(voting);
	}
	client_reply(client, request, "ok", NULL);
}

void answered_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct primary *primary = find(voting, request_value(request, "name"));
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
			take(primary, i, sent);
	client_reply(client, request, "ok", NULL);
}
