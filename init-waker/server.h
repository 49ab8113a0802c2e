#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>

/*
 * One request and one reply a connection, for peers that nobody trusts. No peer can make another wait: every
 * descriptor is non-blocking, a connection has one deadline and a bounded number of bytes, and a newcomer that finds
 * every place taken gets the place of the oldest.
 */

enum { SERVER_CONNECTIONS = 128, SERVER_HELD = 16, SERVER_REPLY_MAX = 96 };

/* What has just happened to the connection whose request is asked about. */
enum arrival { ARRIVAL_BYTES, ARRIVAL_END, ARRIVAL_LATE };

struct reply {
	char text[SERVER_REPLY_MAX];
	size_t length; /* 0: close without a word */
	bool later; /* nothing yet: the connection is held until server_answer_held() */
};

struct connection {
	int fd; /* -1: free */
	bool held; /* without a deadline; of more than SERVER_HELD the oldest is closed */
	bool answered; /* only what the peer still sends is thrown away until it closes */
	size_t length;
	size_t discarded;
	int64_t deadline; /* monotonic ms */
};

struct server {
	int listener; /* -1: none */
	int local; /* a second listener, -1: none */
	int signals; /* from signals_open() */
	size_t slots; /* connections at once, at most SERVER_CONNECTIONS */
	size_t capacity; /* bytes of a request; one that fills it must be answered */
	char *buffers; /* slots * capacity */
	void *context;
	/* False: the request is not complete. True: `reply` is its answer; always true unless ARRIVAL_BYTES. */
	bool (*request)(void *context, int fd, const char *bytes, size_t length, enum arrival arrival,
			struct reply *reply);
	/* A signal other than those of the kernel's own making, SIGCHLD included. */
	void (*signal)(void *context, const struct signalfd_siginfo *info);
	/* Does what is due and returns when to be called next (monotonic ms, INT64_MAX: never). May be NULL. */
	int64_t (*timer)(void *context, int64_t now);
	bool stopping; /* set by a callback: server_run() sends the reply at hand and returns */
	int64_t accept_again; /* monotonic ms; set after a failure that waiting may cure */
	struct connection connections[SERVER_CONNECTIONS];
};

/* Serves until `stopping`. Returns 0, or -1 and errno when the kernel refuses to poll. */
int server_run(struct server *server);

/* Answers everybody who is held. May be called from a callback. */
void server_answer_held(struct server *server, const struct reply *reply);

/* Gives `farewell` to every connection not yet answered, also to those not yet accepted, and closes everything. */
void server_dismiss(struct server *server, const struct reply *farewell);

#endif
