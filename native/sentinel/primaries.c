#include <inttypes.h>

#include "clock.h"
#include "log.h"
#include "voting.h"

/* The longest work on freezes between two looks at what else is to do. */
enum { FREEZING_NS = 10 * NS_PER_MS };

bool primary_asks(const struct primary *primary, const struct peer *peer)
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
		if (primary->timeout_ns / BEATS < shortest && primary_asks(primary, peer))
			shortest = primary->timeout_ns / BEATS;
	return shortest;
}

static void news_of(const struct primary *primary, const char *word, struct message *message)
{
	message_begin(message, "-", word);
	message_text(message, "name", primary->name);
	message_number(message, "epoch", primary->epoch);
	message_end(message);
}

static void tell(struct voting *voting, const struct primary *primary, const char *word)
{
	struct message message;

	news_of(primary, word, &message);
	clients_tell(voting->sentinel, &message);
}

static const char *state_of(const struct primary *primary)
{
	return primary->serves ? "serves" : "stops";
}

void primaries_tell(const struct voting *voting, struct client *client)
{
	for (const struct primary *primary = voting->primaries; primary; primary = primary->next) {
		struct message message;

		if (primary->gone)
			continue;
		if (!primary->pending) {
			news_of(primary, state_of(primary), &message);
			client_send(client, &message);
		}
		if (primary->next_alone) {
			news_of(primary, "alone", &message);
			client_send(client, &message);
		}
	}
}

int64_t primary_until(const struct primary *primary)
{
	return serves_until(primary->sets, primary->set_count, primary->sent, primary->timeout_ns);
}

static bool asks_api_server(const struct primary *primary)
{
	for (size_t i = 0; i < primary->voter_count; i++)
		if (voter_is_api_server(&primary->voters[i]))
			return true;
	return false;
}

/* An answer of the API server costs a write, so it is wanted only when the latest sufficient answers are half over. */
static int64_t alone_due(struct voting *voting, struct primary *primary, int64_t now)
{
	int64_t from = primary_until(primary) - primary->timeout_ns / 3 + 1;

	if (!asks_api_server(primary) || now < from) {
		primary->next_alone = 0;
		return asks_api_server(primary) ? from : INT64_MAX;
	}
	if (now >= primary->next_alone) {
		tell(voting, primary, "alone");
		primary->next_alone = now + primary->timeout_ns / 6;
	}
	return primary->next_alone;
}

/*
 * Stops processes of the primaries that do not serve, and begins with the freeze that has waited longest. Many of them must not keep
 * the sentinel from its own answers. Returns the time of the next call.
 */
static int64_t freezes_due(struct voting *voting, int64_t now)
{
	int64_t enough = now + FREEZING_NS;

	for (;;) {
		struct primary *first = NULL;

		for (struct primary *primary = voting->primaries; primary; primary = primary->next)
			if (!primary->gone && !primary->pending && !primary->serves && primary->freeze &&
			    (!first || freeze_next(primary->freeze) < freeze_next(first->freeze)))
				first = primary;
		if (!first)
			return INT64_MAX;
		now = monotonic_ns();
		if (freeze_next(first->freeze) > now)
			return freeze_next(first->freeze);
		if (now >= enough)
			return now;
		freeze_due(voting->sentinel, first->freeze, first->name, now);
	}
}

/*
 * Returns when to renew the switch of a primary that serves; INT64_MAX: it ends when it should. Each renewal is a transaction, so
 * one counts for three beats. If no answers follow, a slow renewal must not be too late.
 */
static int64_t renewal_due(const struct primary *primary, int64_t end)
{
	const struct deadman *deadman = primary->deadman;
	int64_t beat = primary->timeout_ns / BEATS, due = deadman->until - 4 * beat;

	if (deadman->until >= end)
		return deadman_due(deadman, end);
	/* Beats are not exactly as far apart as planned. */
	if (end - deadman->until >= 5 * beat / 2)
		return deadman->again;
	return due > deadman->again ? due : deadman->again;
}

static void renew(struct primary *primary, int64_t end, int64_t now)
{
	if (primary->deadman && now >= renewal_due(primary, end))
		deadman_renew(primary->deadman, end);
}

void primaries_renew(struct voting *voting, int64_t now)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (primary->serves && now < primary_until(primary))
			renew(primary, primary_until(primary), now);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Packets pass before the processes run; the processes stop after that. Returns the time of the next call. */
static int64_t enforce(struct primary *primary, int64_t now)
{
	struct deadman *deadman = primary->deadman;
	int64_t end = primary_until(primary);

	if (now < end) {
		renew(primary, end, now);
		if (primary->freeze)
			freeze_thaw(primary->freeze, primary->name);
		return deadman ? earlier(end, renewal_due(primary, end)) : end;
	}
	/* Other voters have to answer than when it was renewed. */
	if (deadman && deadman->until > now)
		deadman_renew(deadman, now);
	return deadman ? deadman_due(deadman, now) : INT64_MAX;
}

int64_t primaries_due(struct voting *voting, int64_t now)
{
	int64_t next = pending_due(voting, now), frozen;

	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		int64_t times[2] = { INT64_MAX, INT64_MAX };
		bool serves = now < primary_until(primary);

		if (primary->gone)
			continue;
		if (!primary->pending) {
			if (primary->serves != serves) {
				primary->serves = serves;
				log_line(serves ? "info" : "warn", serves ? "a primary serves" : "a primary has too few answers",
					 ",\"name\":\"%s\",\"epoch\":%" PRId64, log_safe(primary->name), primary->epoch);
				tell(voting, primary, state_of(primary));
			}
			times[0] = enforce(primary, now);
		}
		times[1] = alone_due(voting, primary, now);
		for (size_t i = 0; i < 2; i++)
			if (times[i] < next)
				next = times[i];
	}
	frozen = freezes_due(voting, now);
	return frozen < next ? frozen : next;
}

void primary_take(struct primary *primary, size_t voter, int64_t sent)
{
	if (!primary->voters[voter].refused && sent > primary->sent[voter])
		primary->sent[voter] = sent;
}

size_t primaries_claim(const struct voting *voting, const struct peer *peer, size_t skip, struct frame *beat)
{
	size_t all = 0;

	for (const struct primary *primary = voting->primaries; primary; primary = primary->next) {
		if (!primary_asks(primary, peer) || all++ < skip || beat->count == CLAIMS_MAX)
			continue;
		beat->claims[beat->count++] = (struct claim){
			.slot = primary->number,
			.epoch = (uint32_t)primary->epoch,
			.timeout_ms = (uint32_t)(primary->timeout_ns / NS_PER_MS),
		};
	}
	return all;
}

static const struct claim *claim_of(const struct frame *frame, const struct primary *primary)
{
	for (size_t i = 0; i < frame->count; i++)
		if (frame->claims[i].slot == primary->number && frame->claims[i].epoch == primary->epoch &&
		    frame->claims[i].timeout_ms * (int64_t)NS_PER_MS == primary->timeout_ns)
			return &frame->claims[i];
	return NULL;
}

void primaries_answered(struct voting *voting, const struct peer *peer, const struct frame *answer)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		const struct claim *claim = claim_of(answer, primary);

		for (size_t i = 0; claim && i < primary->voter_count; i++) {
			if (!run_is(&primary->voters[i], peer))
				continue;
			/* Its promise lasts as long as the epoch. */
			if (claim->verdict == REFUSED)
				primary->voters[i].refused = true;
			else if (claim->verdict == ANSWERED)
				primary_take(primary, i, answer->sent);
		}
	}
	voting->news = true;
}
