#include <inttypes.h>

#include "clock.h"
#include "log.h"
#include "voting.h"

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

		if (primary->gone)
			continue;
		news_of(primary, &message);
		client_send(client, &message);
	}
}

int64_t primary_until(const struct primary *primary)
{
	return serves_until(primary->sets, primary->set_count, primary->sent, primary->timeout_ns);
}

int64_t primaries_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct primary *primary = voting->primaries; primary; primary = primary->next) {
		int64_t end;

		if (primary->gone)
			continue;
		end = primary_until(primary);
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

void primaries_answered(struct voting *voting, const struct peer *peer, const struct frame *answer, int64_t now)
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
	primaries_due(voting, now);
}
