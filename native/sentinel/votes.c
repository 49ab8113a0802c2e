/* Long because it is the whole life of a vote: request, judgement, statement, end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "voting.h"

enum {
	RETRY_NS = 100 * NS_PER_MS,
};

/* A node may need so long for the first beat of an epoch, which begins for voters and the primary with the same news. */
static const int64_t first_beat_ns = 2000 * (int64_t)NS_PER_MS;

static struct vote *find(struct voting *voting, const char *slot)
{
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (strcmp(vote->slot, slot) == 0)
			return vote;
	return NULL;
}

static void news_of(const struct vote *vote, const char *word, int64_t epoch, struct message *message)
{
	message_begin(message, "-", word);
	message_text(message, "slot", vote->slot);
	message_number(message, "epoch", epoch);
	message_end(message);
}

static void tell(struct voting *voting, const struct vote *vote, const char *word)
{
	struct message message;

	news_of(vote, word, vote->epoch, &message);
	clients_tell(voting->sentinel, &message);
}

/* How long before a statement its suspicion comes: two beats. */
static int64_t warning_ns(const struct vote *vote)
{
	return vote->timeout_ns / 6;
}

static int64_t statement_due(const struct vote *vote)
{
	int64_t silent = vote->heard + vote->timeout_ns, warned = vote->suspected + warning_ns(vote);

	if (vote->timeout_ns == 0 || vote->refused >= vote->epoch)
		return INT64_MAX;
	return vote->suspect && warned > silent ? warned : silent;
}

void votes_tell(const struct voting *voting, struct client *client)
{
	for (const struct vote *vote = voting->votes; vote; vote = vote->next) {
		struct message message;

		if (vote->refused >= 0) {
			news_of(vote, "silent", vote->refused, &message);
			client_send(client, &message);
		}
		/* An earlier sentinel may have told this client a suspicion. */
		if (statement_due(vote) != INT64_MAX) {
			news_of(vote, vote->suspect ? "suspect" : "trust", vote->epoch, &message);
			client_send(client, &message);
		}
	}
}

static struct vote *find_number(struct voting *voting, uint64_t number)
{
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (vote->number == number)
			return vote;
	return NULL;
}

static enum verdict judge(struct vote *vote, const struct peer *peer, const struct claim *claim, int64_t now)
{
	if (!vote)
		return UNKNOWN;
	if (claim->epoch < vote->epoch || claim->epoch <= vote->refused)
		return REFUSED;
	/*
	 * Only a node that would state the silence of this very primary may answer it: not after a reboot of its node, for that
	 * has ended the pod, and not if this node waits for a shorter time than its answers count.
	 */
	if (claim->epoch != vote->epoch || vote->timeout_ns == 0 || claim->timeout_ms * (int64_t)NS_PER_MS > vote->timeout_ns ||
	    vote->run != peer->run || strcmp(vote->node, peer->name) != 0)
		return UNKNOWN;
	if (vote->denied)
		return REFUSED;
	vote->heard = now;
	return ANSWERED;
}

static void trust(struct voting *voting, struct vote *vote)
{
	if (vote->suspect)
		tell(voting, vote, "trust");
	vote->suspect = vote->overslept = false;
}

void votes_heard(struct voting *voting, const struct peer *peer, int64_t now, struct frame *frame)
{
	for (size_t i = 0; i < frame->count; i++) {
		struct claim *claim = &frame->claims[i];

		struct vote *vote = find_number(voting, claim->slot);

		claim->verdict = judge(vote, peer, claim, now);
		if (claim->verdict == ANSWERED)
			trust(voting, vote);
	}
}

/* A node that cannot hear the primary's node says nothing about it. */
static bool listens(struct voting *voting, const struct vote *vote)
{
	return voting->source.fd >= 0 && peer_find(voting, vote->node);
}

/*
 * A suspicion promises nothing. It comes before the statement, so that the operator knows by then whether other nodes are
 * silent as well, and whether the primary's agent writes.
 */
static int64_t due(const struct vote *vote)
{
	int64_t statement = statement_due(vote);

	return vote->suspect || statement == INT64_MAX ? statement : statement - warning_ns(vote);
}

/*
 * True if a statement is late by as long as its warning, for the first time in this silence. This process was paused, perhaps by the host together
 * with all nodes, or it could not write the statement down. It states the silence when it is late again: it might never be in time.
 */
static bool oversleeps(const struct vote *vote, int64_t now)
{
	return vote->suspect && !vote->overslept && statement_due(vote) != INT64_MAX && statement_due(vote) + warning_ns(vote) <= now;
}

/*
 * Begins each warning when this process runs: while it was paused it has not listened, and a node that was paused as well sends its next beat
 * once it runs again.
 */
static void suspect_all(struct voting *voting, int64_t now)
{
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (!vote->suspect && due(vote) <= now) {
			vote->suspect = true;
			vote->suspected = now;
			tell(voting, vote, "suspect");
		} else if (oversleeps(vote, now)) {
			vote->overslept = true;
			vote->suspected = now;
		}
}

/* States every silence that is due, under one write. */
static int64_t state_all(struct voting *voting, int64_t now)
{
	/* From here on this node does not answer these epochs, whatever becomes of this process. */
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if ((vote->stating = statement_due(vote) <= now)) {
			vote->before = vote->refused;
			vote->refused = vote->epoch;
		}
	if (!voting_save(voting)) {
		log_failure("cannot write down a statement", errno);
		for (struct vote *vote = voting->votes; vote; vote = vote->next)
			if (vote->stating)
				vote->refused = vote->before;
		return now + RETRY_NS;
	}
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (vote->stating) {
			log_line("warn", "a primary is silent", ",\"slot\":\"%s\",\"epoch\":%" PRId64, log_safe(vote->slot), vote->epoch);
			vote->suspect = vote->overslept = false;
			tell(voting, vote, "silent");
		}
	return INT64_MAX;
}

int64_t votes_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;
	bool any = false, statement = false;

	for (struct vote *vote = voting->votes; vote; vote = vote->next) {
		if (!listens(voting, vote)) {
			if (vote->heard < now)
				vote->heard = now;
			trust(voting, vote);
		}
		any = any || due(vote) <= now;
	}
	if (any) {
		/* If this process was paused, the beats of that time still wait. */
		peers_read(voting, WAITING_MAX);
		suspect_all(voting, now);
		for (struct vote *vote = voting->votes; vote; vote = vote->next)
			statement = statement || statement_due(vote) <= now;
	}
	if (statement)
		next = state_all(voting, now);
	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (due(vote) < next && due(vote) > now)
			next = due(vote);
	return next;
}

static void forget(struct vote *gone)
{
	free(gone->slot);
	free(gone->node);
	free(gone);
}

static void unlink_vote(struct voting *voting, struct vote *gone)
{
	for (struct vote **at = &voting->votes; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
}

static size_t count_of(const struct vote *vote)
{
	size_t count = 0;

	for (; vote; vote = vote->next)
		count++;
	return count;
}

/* Returns why the request does not fit what this sentinel has promised; NULL: it fits. */
static const char *misfit(const struct voting *voting, const struct vote *told, const struct vote *known)
{
	if (!known)
		return count_of(voting->votes) >= VOTES_MAX ? "too-many" : NULL;
	if (told->epoch < known->epoch)
		return "older";
	if (told->epoch > known->epoch)
		return NULL;
	/* An epoch has one primary and one time-out. */
	if (told->run != known->run || strcmp(told->node, known->node) != 0)
		return "another-primary";
	return told->timeout_ns != 0 && known->timeout_ns != 0 && told->timeout_ns != known->timeout_ns ? "bad-timeout" : NULL;
}

static const char *read_vote(struct voting *voting, struct vote *told, const struct request *request)
{
	int64_t timeout_ms;

	if (strlen(told->slot) > NAME_BYTES || strlen(told->node) > NAME_BYTES)
		return "bad-slot";
	if (!parse_number(request_value(request, "epoch"), UINT32_MAX, &told->epoch))
		return "bad-epoch";
	if (!parse_run(request_value(request, "run"), &told->run))
		return "bad-run";
	if (!parse_number(request_value(request, "timeout"), DEADLINE_MS_MAX, &timeout_ms))
		return "bad-timeout";
	told->timeout_ns = timeout_ms * NS_PER_MS;
	told->number = slot_number(told->slot);
	told->refused = -1;
	told->denied = request_value(request, "deny") != NULL;
	if (!request_value(request, "refused"))
		return NULL;
	/* Only its own file tells the sentinel what it has stated. */
	if (!voting->restoring)
		return "unknown-key";
	return parse_number(request_value(request, "refused"), UINT32_MAX, &told->refused) ? NULL : "bad-epoch";
}

void vote_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *wrong;
	struct vote *known = find(voting, request_value(request, "slot")), *told = calloc(1, sizeof *told);

	if (!told || !(told->slot = strdup(request_value(request, "slot"))) || !(told->node = strdup(request_value(request, "node")))) {
		client_reply_error(client, request, "vote", ENOMEM);
		if (told)
			forget(told);
		return;
	}
	wrong = read_vote(voting, told, request);
	if (!wrong)
		wrong = misfit(voting, told, known);
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		forget(told);
		return;
	}
	told->heard = monotonic_ns() + first_beat_ns;
	if (known) {
		told->refused = known->refused;
		/* Silence is measured from when this node listens. */
		if (known->epoch == told->epoch && known->timeout_ns != 0) {
			told->heard = known->heard;
			told->suspect = known->suspect;
			told->suspected = known->suspected;
			told->overslept = known->overslept;
		}
		unlink_vote(voting, known);
	}
	told->next = voting->votes;
	voting->votes = told;
	if (voting_save(voting)) {
		if (known)
			forget(known);
		client_reply(client, request, "ok", NULL);
		return;
	}
	client_reply_error(client, request, "cannot write down the vote", errno);
	unlink_vote(voting, told);
	forget(told);
	if (known) {
		known->next = voting->votes;
		voting->votes = known;
	}
}

/* The oldest ones are last. A late request about a slot whose vote has ended for so long is not to be expected. */
static void drop_oldest_ended(struct voting *voting)
{
	struct vote *oldest = NULL;
	size_t ended = 0;

	for (struct vote *vote = voting->votes; vote; vote = vote->next)
		if (vote->timeout_ns == 0) {
			oldest = vote;
			ended++;
		}
	if (ended <= ENDED_MAX)
		return;
	unlink_vote(voting, oldest);
	forget(oldest);
}

void unvote_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct vote *vote = find(voting, request_value(request, "slot"));

	/* A statement stays for as long as this run: a late request must not bring the vote back without it. */
	if (vote && vote->refused >= 0) {
		vote->timeout_ns = 0;
		vote->suspect = false;
		drop_oldest_ended(voting);
	} else if (vote) {
		unlink_vote(voting, vote);
		forget(vote);
	}
	if (!vote || voting_save(voting))
		client_reply(client, request, "ok", NULL);
	else
		client_reply_error(client, request, "cannot write down the end of a vote", errno);
}

void votes_forget(struct voting *voting)
{
	while (voting->votes) {
		struct vote *vote = voting->votes;

		voting->votes = vote->next;
		forget(vote);
	}
}

bool vote_write(const struct vote *vote, FILE *file)
{
	char slot[3 * NAME_BYTES + 1], node[3 * NAME_BYTES + 1];

	if (!value_encode(vote->slot, slot, sizeof slot) || !value_encode(vote->node, node, sizeof node))
		return false;
	fprintf(file, "1 vote slot=%s epoch=%" PRId64 " node=%s run=%016" PRIx64 " timeout=%" PRId64, slot, vote->epoch, node, vote->run,
		vote->timeout_ns / NS_PER_MS);
	if (vote->denied)
		fputs(" deny=1", file);
	if (vote->refused >= 0)
		fprintf(file, " refused=%" PRId64, vote->refused);
	return fputc('\n', file) != EOF;
}
