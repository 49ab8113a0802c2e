#include "server.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

enum {
	REQUEST_MS = 5000,
	/*
	 * After its reply a peer has this long, and this many bytes, to close: a close() with unread bytes would send a
	 * reset, which may overtake the reply.
	 */
	DISCARD_MS = 1000,
	DISCARD_BYTES = 16384,
	ACCEPT_RETRY_MS = 100,
};

/* Beyond any clock value; added to the current time, so that a later connection has a later deadline. */
static const int64_t HELD_MS = (int64_t)1 << 60;

static void release(struct connection *connection)
{
	close(connection->fd);
	connection->fd = -1;
}

static void discard(struct connection *connection)
{
	char waste[4096];
	ssize_t n = recv(connection->fd, waste, sizeof waste, MSG_DONTWAIT);

	if (n > 0)
		connection->discarded += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || connection->discarded > DISCARD_BYTES)
		release(connection);
}

static void send_reply(struct connection *connection, const struct reply *reply)
{
	/* A reply is far smaller than an empty send buffer: it is sent as a whole, or the peer is gone. */
	if (reply->length > 0 && send(connection->fd, reply->text, reply->length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		release(connection);
		return;
	}
	shutdown(connection->fd, SHUT_WR);
	connection->held = false;
	connection->answered = true;
	connection->deadline = monotonic_ms() + DISCARD_MS;
	discard(connection);
}

static char *buffer_of(struct server *server, const struct connection *connection)
{
	return server->buffers + (size_t)(connection - server->connections) * server->capacity;
}

static void hold(struct server *server, struct connection *connection)
{
	struct connection *oldest = NULL;
	size_t held = 0;

	for (size_t i = 0; i < server->slots; i++) {
		struct connection *other = &server->connections[i];

		if (other->fd < 0 || !other->held)
			continue;
		held++;
		if (!oldest || other->deadline < oldest->deadline)
			oldest = other;
	}
	if (held == SERVER_HELD)
		release(oldest);
	connection->held = true;
	connection->deadline = monotonic_ms() + HELD_MS;
}

static void ask(struct server *server, struct connection *connection, enum arrival arrival)
{
	struct reply reply = { .length = 0 };

	if (server->request(server->context, connection->fd, buffer_of(server, connection), connection->length,
			    arrival, &reply)) {
		if (reply.later)
			hold(server, connection);
		else
			send_reply(connection, &reply);
	}
}

static void receive(struct server *server, struct connection *connection)
{
	ssize_t n;

	if (connection->answered || connection->held) {
		discard(connection);
		return;
	}
	n = recv(connection->fd, buffer_of(server, connection) + connection->length,
		 server->capacity - connection->length, MSG_DONTWAIT);
	if (n > 0) {
		connection->length += (size_t)n;
		ask(server, connection, ARRIVAL_BYTES);
	} else if (n == 0) {
		ask(server, connection, ARRIVAL_END);
	} else if (errno != EAGAIN && errno != EINTR) {
		release(connection);
	}
}

static void give_up(struct server *server, struct connection *connection)
{
	if (!connection->answered)
		ask(server, connection, ARRIVAL_LATE);
	if (connection->fd >= 0)
		release(connection);
}

/* Returns a free place, or evicts the oldest connection, answered ones first. */
static struct connection *make_room(struct server *server)
{
	struct connection *oldest = server->connections;

	for (size_t i = 0; i < server->slots; i++) {
		struct connection *connection = &server->connections[i];

		if (connection->fd < 0)
			return connection;
		if (connection->answered != oldest->answered ? connection->answered
							     : connection->deadline < oldest->deadline)
			oldest = connection;
	}
	give_up(server, oldest);
	return oldest;
}

static void accept_some(struct server *server, int listener)
{
	/* Bounded, so that a flood of connections cannot delay signals and deadlines. */
	for (size_t i = 0; i < server->slots && !server->stopping; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct connection *connection;

		if (fd < 0) {
			/* Out of descriptors or memory: the connection stays pending, so polling would spin. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				server->accept_again = monotonic_ms() + ACCEPT_RETRY_MS;
			else if (errno != EAGAIN)
				continue;
			return;
		}
		connection = make_room(server);
		*connection = (struct connection){ .fd = fd, .deadline = monotonic_ms() + REQUEST_MS };
		/*
		 * The request has often arrived already. Reading it now keeps its place from going to a later
		 * connection.
		 */
		receive(server, connection);
	}
}

static void read_signals(struct server *server)
{
	struct signalfd_siginfo info;

	while (!server->stopping && read(server->signals, &info, sizeof info) == (ssize_t)sizeof info)
		server->signal(server->context, &info);
}

static int wait_ms(int64_t now, int64_t next)
{
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now);
}

int server_run(struct server *server)
{
	struct pollfd polled[3 + SERVER_CONNECTIONS];

	for (size_t i = 0; i < server->slots; i++)
		server->connections[i].fd = -1;
	while (!server->stopping) {
		int64_t now = monotonic_ms(), next = INT64_MAX;

		if (server->timer)
			next = server->timer(server->context, now);
		for (size_t i = 0; i < server->slots && !server->stopping; i++) {
			struct connection *connection = &server->connections[i];

			if (connection->fd >= 0 && connection->deadline <= now)
				give_up(server, connection);
			if (connection->fd >= 0 && !connection->held && connection->deadline < next)
				next = connection->deadline;
			polled[3 + i] = (struct pollfd){ .fd = connection->fd, .events = POLLIN };
		}
		if (server->stopping)
			break;
		if (server->accept_again > now && server->accept_again < next)
			next = server->accept_again;
		polled[0] = (struct pollfd){ .fd = server->signals, .events = POLLIN };
		/* poll() ignores a negative descriptor. */
		polled[1] = (struct pollfd){
			.fd = server->accept_again > now ? -1 : server->listener,
			.events = POLLIN,
		};
		polled[2] = (struct pollfd){
			.fd = server->accept_again > now ? -1 : server->local,
			.events = POLLIN,
		};
		if (poll(polled, 3 + server->slots, wait_ms(now, next)) < 0) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			return -1;
		}
		if (polled[0].revents)
			read_signals(server);
		/*
		 * Before accepting: accept_some() may reuse a place, and the event belongs to its earlier connection.
		 */
		for (size_t i = 0; i < server->slots && !server->stopping; i++)
			if (polled[3 + i].revents && server->connections[i].fd >= 0)
				receive(server, &server->connections[i]);
		if (polled[1].revents && !server->stopping)
			accept_some(server, server->listener);
		if (polled[2].revents && !server->stopping)
			accept_some(server, server->local);
	}
	return 0;
}

void server_answer_held(struct server *server, const struct reply *reply)
{
	for (size_t i = 0; i < server->slots; i++)
		if (server->connections[i].fd >= 0 && server->connections[i].held)
			send_reply(&server->connections[i], reply);
}

static void dismiss(int fd, const struct reply *farewell)
{
	char waste[4096];

	while (recv(fd, waste, sizeof waste, MSG_DONTWAIT) == (ssize_t)sizeof waste)
		;
	send(fd, farewell->text, farewell->length, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void dismiss_pending(int *listener, const struct reply *farewell)
{
	if (*listener < 0)
		return;
	for (int i = 0; i < 4 * SERVER_CONNECTIONS; i++) {
		int fd = accept4(*listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			dismiss(fd, farewell);
		else if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	close(*listener);
	*listener = -1;
}

void server_dismiss(struct server *server, const struct reply *farewell)
{
	for (size_t i = 0; i < server->slots; i++) {
		struct connection *connection = &server->connections[i];

		if (connection->fd < 0)
			continue;
		if (!connection->answered)
			dismiss(connection->fd, farewell);
		else
			close(connection->fd);
		connection->fd = -1;
	}
	dismiss_pending(&server->listener, farewell);
	dismiss_pending(&server->local, farewell);
}
