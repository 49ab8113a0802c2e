#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>

/*
 * A server with one request and one reply per connection, for untrusted peers. No peer can make another wait: every
 * descriptor is non-blocking, a connection has one deadline and a bounded number of bytes, and a new connection that
 * finds every place taken evicts the oldest.
 */

enum { SERVER_CONNECTIONS = 128, SERVER_HELD = 16, SERVER_REPLY_MAX = 96 };

/* The event on the connection whose request is passed to `request`. */
enum arrival { ARRIVAL_BYTES, ARRIVAL_END, ARRIVAL_LATE };

struct reply {
	char text[SERVER_REPLY_MAX];
	size_t length; /* 0: close without a reply */
	bool later; /* no reply yet: the connection is held until server_answer_held() */
};

struct connection {
	int fd; /* -1: free */
	bool held; /* without a deadline; beyond SERVER_HELD connections the oldest is closed */
	bool answered; /* further bytes of the peer are discarded until it closes */
	size_t length;
	size_t discarded;
	int64_t deadline; /* monotonic ms */
};

struct server {
	int listener; /* -1: none */
	int local; /* a second listener, -1: none */
	int signals; /* from signals_open() */
	size_t slots; /* simultaneous connections, at most SERVER_CONNECTIONS */
	size_t capacity; /* bytes of a request; a request that fills it must be answered */
	char *buffers; /* slots * capacity */
	void *context;
	/* False: the request is not complete. True: `reply` is the answer; always true unless ARRIVAL_BYTES. */
	bool (*request)(void *context, int fd, const char *bytes, size_t length, enum arrival arrival,
			struct reply *reply);
	/* Called for each signal read from `signals`, SIGCHLD included. Faults of our own still kill. */
	void (*signal)(void *context, const struct signalfd_siginfo *info);
	/*
	 * Does the work that is due and returns the time of its next call (monotonic ms, INT64_MAX: never). May be
	 * NULL.
	 */
	int64_t (*timer)(void *context, int64_t now);
	bool stopping; /* set by a callback: server_run() sends the pending reply and returns */
	int64_t accept_again; /* monotonic ms; set after a failure that may be temporary */
	struct connection connections[SERVER_CONNECTIONS];
};

/* Serves until `stopping`. Returns 0, or -1 and errno if poll() fails. */
int server_run(struct server *server);

/* Answers all held connections. May be called from a callback. */
void server_answer_held(struct server *server, const struct reply *reply);

/* Sends `farewell` to every unanswered connection, also to those not yet accepted, and closes everything. */
void server_dismiss(struct server *server, const struct reply *farewell);

#endif
