/*
 * A grave redirects every new TCP or UDP connection of a dead pod to its heir, by rules inside the dead pod's own
 * network namespace. Everything but a few elements is in place before the death; adding them is one message.
 */
#ifndef GRAVE_H
#define GRAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "committer.h"
#include "conntrack.h"
#include "network.h"
#include "process.h"
#include "rules.h"

enum grave_state { GRAVE_READY, GRAVE_CLOSED, GRAVE_FAILED };

struct grave {
	enum grave_state state, later; /* later: the state at the end of the change that is under way */
	bool late; /* the kernel is at work on it, or grave_settle() has not looked since */
	bool wanted; /* a client or a death has closed it, and none has opened it since */
	struct committer *committer; /* keeps the namespace alive until grave_free() */
	struct network network;
	int resets; /* the setting of how long the kernel keeps a connection that was reset; -1: there is none */
	int tracking; /* a socket of the pod's connection tracking, for grave_sweep() */
	int connections; /* a socket that lists and ends the pod's connections, for grave_end_connections(); -1: this kernel has none */
	struct addresses addresses; /* the pod's addresses */
	bool both; /* the tables of IPv4 and IPv6; else that of IPv4 only */
	struct address heir;
	struct batch close, open;
	uint8_t close_bytes[ELEMENTS_BYTES], open_bytes[ELEMENTS_BYTES];
};

/*
 * Prepares a redirect in the network namespace of `process` to `heir`: turns forwarding on and ICMP redirects off, and replaces the
 * tables. If `closed` returns true for the namespace, the redirect is in effect at once. Returns NULL with errno. EPERM also means
 * the node's own namespace: a redirect there would send away the node's traffic. EAFNOSUPPORT: the heir has an address of IPv6, and
 * this kernel cannot redirect that.
 */
struct grave *grave_dig(struct process process, const struct address *heir, bool (*closed)(void *context, const struct network *),
			void *context);

/*
 * Sets another heir, also if the redirect is in effect already. Returns 0 or an errno: EBUSY while a change is late, EAFNOSUPPORT as
 * above. On an error nothing has changed, except on EINPROGRESS: see committer_commit(). Then the state is FAILED until
 * grave_settle().
 */
int grave_aim(struct grave *grave, const struct address *heir);

/*
 * Puts the redirect into effect. Returns 0 or an errno; the state becomes CLOSED or FAILED. On EINPROGRESS it may become CLOSED at
 * grave_settle().
 */
int grave_close(struct grave *grave);

/* Begins to remove older connections from the connection tracking, too, if the redirect is in effect. */
void grave_sweep(const struct grave *grave);

/*
 * Begins to reset the connections that clients have with this process of the pod, if the redirect is in effect: they connect to the heir then. Call it
 * when the process begins to die. Once it has died, the kernel has closed them.
 */
void grave_end_connections(const struct grave *grave, struct process process);

/* Ends the redirect by removing the elements; the state becomes READY. Returns 0 or an errno: EBUSY while a change is late. */
int grave_open(struct grave *grave);

/*
 * Looks whether the kernel has ended a late change. After its end, a redirect that is wanted takes effect. Returns false if the change
 * is still late: look again.
 */
bool grave_settle(struct grave *grave);

/* Frees the grave; its rules and elements stay in the namespace. */
void grave_free(struct grave *grave);

const char *grave_state_name(const struct grave *grave);

#endif
