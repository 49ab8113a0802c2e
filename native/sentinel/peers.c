#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "voting.h"

enum { READ_AT_ONCE = 64 };

struct peer *peer_find(struct voting *voting, const char *name)
{
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (strcmp(peer->name, name) == 0)
			return peer;
	return NULL;
}

static void send_frame(struct voting *voting, const struct peer *peer, const struct frame *frame)
{
	uint8_t bytes[FRAME_BYTES];
	size_t length = frame_write(frame, peer->key, bytes);

	/* A datagram may be lost at any time, so a failure to send one is nothing else. */
	(void)sendto(voting->source.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&peer->address,
		     sizeof peer->address);
}

static void answer(struct voting *voting, struct peer *peer, const struct frame *beat, int64_t now)
{
	struct frame frame = *beat;

	/* A beat that comes twice is no sign of life. */
	if (beat->sent <= peer->heard)
		return;
	frame.type = ANSWER;
	frame.from = voting->run;
	frame.to = peer->run;
	frame.process = voting->process;
	if (beat->process == voting->process) {
		peer->heard = beat->sent;
		votes_heard(voting, peer, now, &frame);
	} else {
		for (size_t i = 0; i < frame.count; i++)
			frame.claims[i].verdict = UNKNOWN;
	}
	send_frame(voting, peer, &frame);
}

static void take_answer(struct voting *voting, struct peer *peer, const struct frame *answer)
{
	/* The voter is another process, and counts no beat before it has its number back. */
	if (peer->process != answer->process) {
		peer->process = answer->process;
		peer->next_beat = 0;
	}
	primaries_answered(voting, peer, answer);
}

/* Returns who has sent the frame; NULL: no peer. No one but a peer can name its run, which another report may claim as well. */
static struct peer *sender_of(struct voting *voting, const uint8_t *bytes, size_t length, const struct in6_addr *address, struct frame *frame)
{
	uint32_t tag;

	if (length < sizeof tag)
		return NULL;
	memcpy(&tag, bytes, sizeof tag);
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (peer->tag == ntohl(tag) && memcmp(&peer->address.sin6_addr, address, sizeof *address) == 0 &&
		    frame_read(bytes, length, peer->key, frame) && frame->from == peer->run)
			return peer;
	return NULL;
}

void peers_read(struct voting *voting, size_t most)
{
	uint8_t bytes[FRAME_BYTES + 1];
	struct sockaddr_in6 sender;
	socklen_t room = sizeof sender;
	ssize_t length;

	/* A flood of datagrams must not keep the sentinel from anything else. */
	while (most-- > 0 && (length = recvfrom(voting->source.fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&sender, &room)) >= 0) {
		int64_t now = monotonic_ns();
		struct frame frame;
		struct peer *peer = sender_of(voting, bytes, (size_t)length, &sender.sin6_addr, &frame);

		room = sizeof sender;
		if (!peer || frame.to != voting->run)
			continue;
		if (frame.type == BEAT)
			answer(voting, peer, &frame, now);
		/* The time is its own, and it has the peer's word that the beat was received. */
		else if (frame.sent <= now)
			take_answer(voting, peer, &frame);
	}
}

static void beat(struct voting *voting, const struct peer *peer, int64_t now)
{
	size_t done = 0, all;

	do {
		/* No two beats have the same time. */
		struct frame frame = { .type = BEAT, .from = voting->run, .to = peer->run, .process = peer->process };

		frame.sent = now + (int64_t)(done / CLAIMS_MAX);

		all = primaries_claim(voting, peer, done, &frame);
		done += frame.count;
		send_frame(voting, peer, &frame);
	} while (done < all);
}

static void receive(struct source *source, uint32_t events)
{
	(void)events;
	peers_read((struct voting *)source, READ_AT_ONCE);
}

void voting_init(struct voting *voting, struct sentinel *sentinel)
{
	voting->sentinel = sentinel;
	voting->source = (struct source){ .fd = -1, .ready = receive };
}

int64_t peers_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct peer *peer = voting->peers; peer; peer = peer->next) {
		int64_t interval = voting->source.fd < 0 ? INT64_MAX : primaries_interval(voting, peer);

		if (interval == INT64_MAX)
			continue;
		if (now >= peer->next_beat) {
			beat(voting, peer, now);
			peer->next_beat = now + interval;
		}
		if (peer->next_beat < next)
			next = peer->next_beat;
	}
	return next;
}
