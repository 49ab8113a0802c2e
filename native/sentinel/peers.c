#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "voting.h"

struct peer *peer_find(struct voting *voting, const char *name)
{
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (strcmp(peer->name, name) == 0)
			return peer;
	return NULL;
}

/* More than one node may have had the same run only by forgery; the key decides. */
static struct peer *peer_of_run(struct voting *voting, uint64_t run)
{
	for (struct peer *peer = voting->peers; peer; peer = peer->next)
		if (peer->run == run)
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
	peer->heard = beat->sent;
	frame.type = ANSWER;
	frame.from = voting->run;
	frame.to = peer->run;
	votes_heard(voting, peer, now, &frame);
	send_frame(voting, peer, &frame);
}

void peers_read(struct voting *voting)
{
	uint8_t bytes[FRAME_BYTES + 1];
	ssize_t length;

	while ((length = recv(voting->source.fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0) {
		int64_t now = monotonic_ns();
		struct frame frame;
		struct peer *peer;
		uint64_t from;

		if (!frame_from(bytes, (size_t)length, &from))
			continue;
		peer = peer_of_run(voting, from);
		if (!peer || !frame_read(bytes, (size_t)length, peer->key, &frame) || frame.to != voting->run)
			continue;
		if (frame.type == BEAT)
			answer(voting, peer, &frame, now);
		/* The time is its own, and it has the peer's word that the beat was received. */
		else if (frame.sent <= now)
			primaries_answered(voting, peer, &frame, now);
	}
}

static void beat(struct voting *voting, const struct peer *peer, int64_t now)
{
	size_t done = 0, all;

	do {
		/* No two beats have the same time. */
		struct frame frame = { .type = BEAT, .from = voting->run, .to = peer->run, .sent = now + (int64_t)(done / CLAIMS_MAX) };

		all = primaries_claim(voting, peer, done, &frame);
		done += frame.count;
		send_frame(voting, peer, &frame);
	} while (done < all);
}

static void receive(struct source *source, uint32_t events)
{
	(void)events;
	peers_read((struct voting *)source);
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

void heartbeats_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	socklen_t length = sizeof own;
	struct message message;
	char run[17];
	int64_t port;

	if (!parse_number(request_value(request, "port"), UINT16_MAX, &port)) {
		client_reply(client, request, "refused", "bad-port");
		return;
	}
	if (voting->source.fd < 0) {
		static const int no = 0;
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		own.sin6_port = htons((uint16_t)port);
		voting->source.fd = fd;
		if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0 ||
		    bind(fd, (struct sockaddr *)&own, sizeof own) != 0 ||
		    !loop_add(&client->sentinel->loop, &voting->source, EPOLLIN)) {
			client_reply_error(client, request, "cannot receive heartbeats", errno);
			if (fd >= 0)
				close(fd);
			voting->source.fd = -1;
			return;
		}
	}
	getsockname(voting->source.fd, (struct sockaddr *)&own, &length);
	snprintf(run, sizeof run, "%016llx", (unsigned long long)voting->run);
	message_begin(&message, request->id, "listening");
	message_number(&message, "port", ntohs(own.sin6_port));
	message_text(&message, "run", run);
	message_end(&message);
	client_send(client, &message);
}

static bool parse_address(const char *text, int64_t port, struct sockaddr_in6 *address)
{
	struct in_addr four;

	*address = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	if (inet_pton(AF_INET6, text, &address->sin6_addr) == 1)
		return true;
	if (inet_pton(AF_INET, text, &four) != 1)
		return false;
	address->sin6_addr.s6_addr[10] = address->sin6_addr.s6_addr[11] = 0xff;
	memcpy(address->sin6_addr.s6_addr + 12, &four, sizeof four);
	return true;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_key(const char *text, uint8_t key[HMAC_KEY_BYTES])
{
	if (strlen(text) != (size_t)2 * HMAC_KEY_BYTES)
		return false;
	for (size_t i = 0; i < HMAC_KEY_BYTES; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

bool parse_run(const char *text, uint64_t *run)
{
	*run = 0;
	if (strlen(text) != 16)
		return false;
	for (size_t i = 0; i < 16; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		*run = *run << 4 | (uint64_t)digit;
	}
	return true;
}

static size_t count_of(const struct peer *peer)
{
	size_t count = 0;

	for (; peer; peer = peer->next)
		count++;
	return count;
}

void peer_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	const char *name = request_value(request, "name");
	struct peer *peer = peer_find(voting, name), told = { .heard = never_ns };
	int64_t port;

	if (!parse_number(request_value(request, "port"), UINT16_MAX, &port) || port == 0 ||
	    !parse_address(request_value(request, "address"), port, &told.address)) {
		client_reply(client, request, "refused", "bad-address");
		return;
	}
	if (!parse_run(request_value(request, "run"), &told.run) || !parse_key(request_value(request, "key"), told.key)) {
		client_reply(client, request, "refused", "bad-key");
		return;
	}
	if (!peer && count_of(voting->peers) >= PEERS_MAX) {
		client_reply(client, request, "refused", "too-many");
		return;
	}
	if (!peer) {
		peer = calloc(1, sizeof *peer);
		if (peer)
			peer->name = strdup(name);
		if (!peer || !peer->name) {
			free(peer);
			client_reply_error(client, request, "peer", ENOMEM);
			return;
		}
		peer->next = voting->peers;
		voting->peers = peer;
	}
	/* Another run of the same node has its own numbers, and has answered nothing. */
	if (peer->run != told.run) {
		told.next = peer->next;
		told.name = peer->name;
		*peer = told;
	}
	peer->address = told.address;
	memcpy(peer->key, told.key, sizeof peer->key);
	client_reply(client, request, "ok", NULL);
}

void unpeer_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;
	struct peer *gone = peer_find(voting, request_value(request, "name"));

	for (struct peer **at = &voting->peers; gone && *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			free(gone->name);
			free(gone);
			break;
		}
	client_reply(client, request, "ok", NULL);
}

