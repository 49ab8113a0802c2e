/* The requests about other nodes. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "number.h"
#include "peer_filter.h"
#include "voting.h"

/* The limit of the node for other programs does not apply to root. */
static bool make_room(int fd)
{
	static const int bytes = RECEIVE_BYTES;

	return setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0 ||
	       setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0;
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
	/* Another port: the configuration has changed. */
	if (voting->source.fd >= 0 && port != 0 && port != voting->port) {
		close(voting->source.fd);
		voting->source.fd = -1;
	}
	if (voting->source.fd < 0) {
		static const int no = 0;
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		own.sin6_port = htons((uint16_t)port);
		voting->source.fd = fd;
		/* Before it can receive anything. */
		peer_filter(voting);
		if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0 || !make_room(fd) ||
		    bind(fd, (struct sockaddr *)&own, sizeof own) != 0 ||
		    !loop_add(&client->sentinel->loop, &voting->source, EPOLLIN)) {
			int error = errno;

			if (fd >= 0)
				close(fd);
			voting->source.fd = -1;
			voting->port = (int)port;
			/* The promises of an earlier sentinel count all the same, and the agent asks again. */
			if (voting->restoring)
				log_failure("cannot receive heartbeats", error);
			else
				client_reply_error(client, request, "cannot receive heartbeats", error);
			return;
		}
	}
	getsockname(voting->source.fd, (struct sockaddr *)&own, &length);
	voting->port = ntohs(own.sin6_port);
	if (!voting_save(voting)) {
		client_reply_error(client, request, "cannot write down the port", errno);
		return;
	}
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
	peer->tag = frame_tag(peer->key);
	peer_filter(voting);
	if (voting_save(voting))
		client_reply(client, request, "ok", NULL);
	else
		client_reply_error(client, request, "cannot write down the peer", errno);
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
	peer_filter(voting);
	/* The next sentinel must not know its key either. */
	if (!gone || voting_save(voting))
		client_reply(client, request, "ok", NULL);
	else
		client_reply_error(client, request, "cannot write down the end of a peer", errno);
}

void peers_forget(struct voting *voting)
{
	while (voting->peers) {
		struct peer *peer = voting->peers;

		voting->peers = peer->next;
		free(peer->name);
		free(peer);
	}
}

bool peer_write(const struct peer *peer, FILE *file)
{
	char name[3 * NAME_BYTES + 1], address[INET6_ADDRSTRLEN];

	if (!value_encode(peer->name, name, sizeof name) ||
	    !inet_ntop(AF_INET6, &peer->address.sin6_addr, address, sizeof address))
		return false;
	fprintf(file, "1 peer name=%s address=%s port=%d run=%016llx key=", name, address, ntohs(peer->address.sin6_port),
		(unsigned long long)peer->run);
	for (size_t i = 0; i < HMAC_KEY_BYTES; i++)
		fprintf(file, "%02x", peer->key[i]);
	return fputc('\n', file) != EOF;
}
