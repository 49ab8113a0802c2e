#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "secret.h"
#include "spawn.h"
#include "stop.h"
#include "verbs.h"

enum { READ_BYTES = 4096 };

struct door {
	struct source source;
	struct sentinel *sentinel;
};

static void drop(struct client *client)
{
	struct sentinel *sentinel = client->sentinel;

	if (client->source.fd < 0)
		return;
	for (struct client **at = &sentinel->clients; *at; at = &(*at)->next)
		if (*at == client) {
			*at = client->next;
			break;
		}
	free(client->in);
	free(client->out);
	client->in = client->out = NULL;
	loop_forget(&sentinel->loop, &client->source);
	/*
	 * A client that is gone cannot end its stop, and it receives no results of its spawns. The spawns must end
	 * before the stopped processes resume: see spawn_ended() and let_go().
	 */
	if (!spawns_kill_of(sentinel, client->serial))
		stops_continue_of(sentinel, client->serial);
}

static void client_interest(struct client *client)
{
	loop_change(&client->sentinel->loop, &client->source, EPOLLIN | (client->out_length ? EPOLLOUT : 0));
}

static void flush(struct client *client)
{
	ssize_t n = send(client->source.fd, client->out, client->out_length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		drop(client);
		return;
	}
	if (n <= 0)
		return;
	client->out_length -= (size_t)n;
	memmove(client->out, client->out + n, client->out_length);
	if (client->out_length == 0) {
		free(client->out);
		client->out = NULL;
		client_interest(client);
	}
}

static void keep(struct client *client, const char *text, size_t length)
{
	char *out = client->out_length + length > UNREAD_BYTES ? NULL : realloc(client->out, client->out_length + length);

	if (!out) {
		log_line("warn", "a client does not read its replies", ",\"client\":%llu", (unsigned long long)client->serial);
		shutdown(client->source.fd, SHUT_RDWR);
		return;
	}
	client->out = out;
	memcpy(out + client->out_length, text, length);
	client->out_length += length;
	client_interest(client);
}

void client_send(struct client *client, const struct message *message)
{
	ssize_t n = 0;

	if (!client || client->source.fd < 0)
		return;
	if (client->out_length == 0) {
		n = send(client->source.fd, message->text, message->length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			/* The caller may still use the client; receive() sees the shutdown and drops it. */
			shutdown(client->source.fd, SHUT_RDWR);
			return;
		}
		n = n < 0 ? 0 : n;
	}
	if ((size_t)n < message->length)
		keep(client, message->text + n, message->length - (size_t)n);
}

struct client *client_of(struct sentinel *sentinel, const struct asker *asker)
{
	struct client *client = sentinel->clients;

	while (client && client->serial != asker->serial)
		client = client->next;
	return client;
}

void client_send_to_asker(struct sentinel *sentinel, const struct asker *asker, const struct message *message)
{
	client_send(client_of(sentinel, asker), message);
}

void clients_tell(struct sentinel *sentinel, const struct message *message)
{
	for (struct client *client = sentinel->clients; client; client = client->next)
		if (client->hears)
			client_send(client, message);
}

struct asker asker_of(const struct client *client, const struct request *request)
{
	struct asker asker = { .serial = client->serial };

	snprintf(asker.id, sizeof asker.id, "%s", request->id);
	return asker;
}

void client_reply(struct client *client, const struct request *request, const char *word, const char *reason)
{
	struct message message;

	client->refused = client->refused || strcmp(word, "ok") != 0;
	message_begin(&message, request->id ? request->id : "-", word);
	if (reason)
		message_text(&message, "reason", reason);
	message_end(&message);
	client_send(client, &message);
}

void client_reply_error(struct client *client, const struct request *request, const char *what, int error)
{
	char reason[256];

	snprintf(reason, sizeof reason, "%s: %s", what, strerror(error));
	client_reply(client, request, error == ESRCH ? "gone" : "failed", error == ESRCH ? NULL : reason);
}

/*
 * A connection that breaks the protocol is not our client: it reads the refusal, and nothing it sends later is served.
 */
static void refuse(struct client *client, const char *id, const char *reason)
{
	client_reply(client, &(struct request){ .id = id }, "refused", reason);
	log_line("warn", "closed a connection", ",\"client\":%llu,\"reason\":\"%s\"",
		 (unsigned long long)client->serial, reason);
	drop(client);
}

static void serve_line(struct client *client, char *line, size_t length)
{
	/* Too big for the stack of a small program. Static is safe because only one line is served at a time. */
	static struct request request;

	if (length > LINE_BYTES)
		refuse(client, NULL, "too-long");
	else if (line_parse(line, length, &request))
		verb_run(client, &request);
	else
		refuse(client, request.id, "malformed");
}

/* Sends no reply: a stranger could learn something from one. */
static void identify(struct client *client, const char *line, size_t length)
{
	client->known = secret_is(line, length);
	if (client->known)
		return;
	log_line("warn", "refused a client without the secret", ",\"client\":%llu", (unsigned long long)client->serial);
	drop(client);
}

/* Serves every complete line and keeps the beginning of the next one. */
static void serve_lines(struct client *client)
{
	size_t begin = 0;
	char *end;

	while (client->source.fd >= 0 &&
	       (end = memchr(client->in + begin, '\n', client->in_length - begin))) {
		size_t length = (size_t)(end - client->in) - begin;

		if (client->known)
			serve_line(client, client->in + begin, length);
		else
			identify(client, client->in + begin, length);
		begin += length + 1;
	}
	if (client->source.fd < 0)
		return;
	client->in_length -= begin;
	memmove(client->in, client->in + begin, client->in_length);
	if (!client->known && client->in_length > SECRET_LENGTH)
		identify(client, client->in, client->in_length);
	else if (client->in_length > LINE_BYTES)
		refuse(client, NULL, "too-long");
	if (client->source.fd >= 0 && client->in_length == 0) {
		free(client->in);
		client->in = NULL;
		client->in_room = 0;
	}
}

static void receive(struct source *source, uint32_t events)
{
	struct client *client = (struct client *)source;
	ssize_t n;

	if (events & EPOLLOUT)
		flush(client);
	if (client->source.fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
		return;
	if (client->in_room - client->in_length < READ_BYTES) {
		char *in = realloc(client->in, client->in_length + 2 * READ_BYTES);

		if (!in) {
			drop(client);
			return;
		}
		client->in = in;
		client->in_room = client->in_length + 2 * READ_BYTES;
	}
	n = recv(client->source.fd, client->in + client->in_length, READ_BYTES, MSG_DONTWAIT);
	if (n > 0) {
		client->in_length += (size_t)n;
		serve_lines(client);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		drop(client);
	}
}

static size_t count_of(const struct client *clients)
{
	size_t count = 0;

	for (; clients; clients = clients->next)
		count++;
	return count;
}

static void accept_one(struct source *source, uint32_t events)
{
	struct sentinel *sentinel = ((struct door *)source)->sentinel;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof peer;
	struct client *client;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != 0) {
		log_line("warn", "refused a peer that is not root", ",\"uid\":%lld", (long long)peer.uid);
		close(fd);
		return;
	}
	client = count_of(sentinel->clients) < CLIENTS_MAX && !sentinel->ending ? calloc(1, sizeof *client) : NULL;
	if (!client) {
		log_line("warn", "no room for a client", ",\"pid\":%d", (int)peer.pid);
		close(fd);
		return;
	}
	client->source = (struct source){ .fd = fd, .ready = receive };
	client->sentinel = sentinel;
	client->serial = ++sentinel->serials;
	if (!loop_add(&sentinel->loop, &client->source, EPOLLIN)) {
		close(fd);
		free(client);
		return;
	}
	client->next = sentinel->clients;
	sentinel->clients = client;
}

bool clients_accept(struct sentinel *sentinel, int listener)
{
	struct door *door = calloc(1, sizeof *door);

	if (!door)
		return false;
	door->source = (struct source){ .fd = listener, .ready = accept_one };
	door->sentinel = sentinel;
	sentinel->door = &door->source;
	return loop_add(&sentinel->loop, &door->source, EPOLLIN);
}
