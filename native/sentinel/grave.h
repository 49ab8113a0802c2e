/*
 * A grave: at a death, every new TCP or UDP connection to the dead pod goes on to its heir, by rules inside the dead
 * pod's own network namespace. Everything but two elements of a map is there before; adding them is one message.
 */
#ifndef GRAVE_H
#define GRAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "conntrack.h"
#include "process.h"
#include "rules.h"

enum grave_state { GRAVE_READY, GRAVE_CLOSED, GRAVE_FAILED };

/* A network namespace; containers of a pod share one. */
struct network {
	uint64_t device, inode;
};

bool network_same(const struct network *a, const struct network *b);

struct grave {
	enum grave_state state;
	int netlink; /* keeps the namespace alive until the grave is forgotten */
	struct network network;
	struct addresses addresses; /* of the pod */
	uint32_t heir; /* network byte order */
	struct batch close, open;
	uint8_t close_bytes[ELEMENTS_BYTES], open_bytes[ELEMENTS_BYTES];
};

/*
 * Digs a grave in the network namespace of `process`, for connections to be sent to `heir` (network byte order):
 * forwarding on, redirects off, table made anew; it is closed from the beginning if `closed` says so of the namespace.
 * NULL with errno; EPERM also for the node's own namespace, in which it would send the node's traffic away.
 */
struct grave *grave_dig(struct process process, uint32_t heir, bool (*closed)(void *context, const struct network *),
			void *context);

/* From now on its connections are for that heir, also where it is closed already. 0 or an errno; then nothing has changed. */
int grave_aim(struct grave *grave, uint32_t heir);

/* Sends the message. 0 or an errno; state becomes CLOSED or FAILED. */
int grave_close(struct grave *grave);

/* After it has been closed, when there is time: also has the kernel forget what it remembers of before. */
void grave_sweep(const struct grave *grave);

/* Takes the elements out again; state becomes READY. 0 or an errno. */
int grave_open(struct grave *grave);

/* Forgets it; rules and elements stay in the namespace as they are. */
void grave_free(struct grave *grave);

const char *grave_state_name(const struct grave *grave);

#endif
