#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "voting.h"

static struct vote *find(struct voting *voting, const char *slot)
{
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (strcmp(vote->slot, slot) == 0)
			return vote;
	return NULL;
}

static void news_of(const struct vote *vote, struct message *message)
{
	message_begin(message, "-", "silent");
	message_text(message, "slot", vote->slot);
	message_number(message, "epoch", vote->epoch);
	message_end(message);
}

static void tell(struct voting *voting, const struct vote *vote)
{
	struct message message;

	news_of(vote, &message);
	clients_tell(voting->sentinel, &message);
}

void votes_tell(const struct voting *voting, struct client *client)
{
	for (const struct vote *vote = voting->votes; vote; vote = vote->next) {
		struct message message;

		if (!vote->stated)
			continue;
		news_of(vote, &message);
		client_send(client, &message);
	}
}

static struct vote *find_number(struct voting *voting, uint64_t number)
{
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (vote->number == number)
			return vote;
	return NULL;
}

void votes_heard(struct voting *voting, const struct peer *peer, int64_t now, struct frame *frame)
{
	for (size_t i = 0; i < frame->count; i++) {
		struct claim *claim = &frame->claims[i];
		struct vote *vote = find_number(voting, claim->slot);

		claim->refused = vote && (vote->epoch > claim->epoch || (vote->epoch == claim->epoch && vote->stated));
		/* After a reboot of its node, the pod that had this epoch is gone, and beats are no news of it. */
		if (vote && vote->epoch == claim->epoch && vote->run == peer->run && strcmp(vote->node, peer->name) == 0)
			vote->heard = now;
	}
}

int64_t votes_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;
	bool read = false;

	for (struct vote *vote = voting->votes; vote; vote = vote->next) {
		int64_t end = vote->heard + vote->timeout_ns;

		if (vote->stated || vote->timeout_ns == 0)
			continue;
		/* If this process was paused, the beats of that time still wait. */
		if (now >= end && !read) {
			read = true;
			peers_read(voting);
			end = vote->heard + vote->timeout_ns;
		}
		if (now < end) {
			next = end < next ? end : next;
			continue;
		}
		/* From here on this node does not answer the epoch, whatever becomes of this process. The sentinel tells its clients after that. */
		vote->stated = true;
		if (!voting_save(voting)) {
			log_failure("cannot write down a statement", errno);
			vote->stated = false;
			vote->heard = now;
			continue;
		}
		log_line("warn", "a primary is silent", ",\"slot\":\"%s\",\"epoch\":%" PRId64, log_safe(vote->slot), vote->epoch);
		tell(voting, vote);
	}
	return next;
}

static void forget(struct voting *voting, struct vote *gone)
{
	for (struct vote **at = &voting->votes; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
	free(gone->slot);
	free(gone->node);
	free(gone);
}

static size_t count_of(const struct vote *vote)
{
	size_t count = 0;

	for (; vote; vote = vote->next)
		count++;
	return count;
}

void vote_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *slot = request_value(request, "slot"), *node = request_value(request, "node"), *wrong = NULL;
	struct vote *known = find(voting, slot), told = { .heard = monotonic_ns(), .stated = request_value(request, "stated") != NULL };
	struct vote *vote;
	int64_t timeout_ms;

	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &told.epoch))
		wrong = "bad-epoch";
	else if (!parse_run(request_value(request, "run"), &told.run))
		wrong = "bad-run";
	else if (!parse_number(request_value(request, "timeout"), DEADLINE_MS_MAX, &timeout_ms))
		wrong = "bad-timeout";
	else if (known && known->epoch > told.epoch)
		/* A later epoch refuses the earlier ones. */
		wrong = "older";
	else if (!known && count_of(voting->votes) >= VOTES_MAX)
		wrong = "too-many";
	/* Only its own file tells the sentinel what it has stated. */
	else if (told.stated && !voting->restoring)
		wrong = "unknown-key";
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		return;
	}
	told.timeout_ns = timeout_ms * NS_PER_MS;
	if (known && known->epoch == told.epoch) {
		/* Silence is measured from when this node listens. */
		if (known->timeout_ns == 0)
			known->heard = told.heard;
		known->timeout_ns = told.timeout_ns;
		client_reply(client, request, "ok", NULL);
		return;
	}
	vote = malloc(sizeof *vote);
	told.slot = strdup(slot);
	told.node = strdup(node);
	if (!vote || !told.slot || !told.node) {
		free(vote);
		free(told.slot);
		free(told.node);
		client_reply_error(client, request, "vote", ENOMEM);
		return;
	}
	/* The later epoch refuses the earlier ones. */
	told.number = slot_number(slot);
	told.next = voting->votes;
	*vote = told;
	voting->votes = vote;
	if (known)
		forget(voting, known);
	if (voting_save(voting))
		client_reply(client, request, "ok", NULL);
	else
		client_reply_error(client, request, "cannot write down the vote", errno);
}

void unvote_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct vote *vote = find(voting, request_value(request, "slot"));

	if (vote) {
		forget(voting, vote);
		(void)voting_save(voting);
	}
	client_reply(client, request, "ok", NULL);
}

bool vote_write(const struct vote *vote, FILE *file)
{
	char slot[3 * NAME_BYTES + 1], node[3 * NAME_BYTES + 1];

	if (!value_encode(vote->slot, slot, sizeof slot) || !value_encode(vote->node, node, sizeof node))
		return false;
	return fprintf(file, "1 vote slot=%s epoch=%" PRId64 " node=%s run=%016" PRIx64 " timeout=%" PRId64 "%s\n", slot, vote->epoch, node,
		       vote->run, vote->timeout_ns / NS_PER_MS, vote->stated ? " stated=1" : "") > 0;
}
