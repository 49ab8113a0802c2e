/* Connections to the socket, the lines they send, and the messages they receive. */
#ifndef CLIENT_H
#define CLIENT_H

#include "sentinel.h"

enum { CLIENTS_MAX = 16, UNREAD_BYTES = 1024 * 1024 };

struct client {
	struct source source;
	struct client *next;
	struct sentinel *sentinel;
	uint64_t serial;
	bool hears; /* receives events */
	bool known; /* has sent the secret */
	bool refused; /* has got a reply that is no success */
	char *in;
	size_t in_length, in_room;
	char *out;
	size_t out_length;
};

/* Accepts the connections of a listening socket from now on. False with errno. */
bool clients_accept(struct sentinel *sentinel, int listener);

/* Sends a finished message. Drops a client that does not read its messages. NULL: it is gone. */
void client_send(struct client *client, const struct message *message);
void client_send_to_asker(struct sentinel *sentinel, const struct asker *asker, const struct message *message);
/* Sends a message to all connections that receive events. */
void clients_tell(struct sentinel *sentinel, const struct message *message);

/* Returns the client that waits for a deferred reply; NULL if its connection is gone. */
struct client *client_of(struct sentinel *sentinel, const struct asker *asker);
struct asker asker_of(const struct client *client, const struct request *request);

/* Sends a reply that consists of one word. `reason` NULL: none. */
void client_reply(struct client *client, const struct request *request, const char *word, const char *reason);
/* Replies `failed`, or `gone` for ESRCH. */
void client_reply_error(struct client *client, const struct request *request, const char *what, int error);

#endif
