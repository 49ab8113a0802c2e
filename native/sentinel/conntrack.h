/*
 * Connections that the kernel remembers as the dead pod's own. A rule decides for the first packet only: a client that
 * keeps its UDP socket, or whose SYN was dropped, would be led to whoever listens in the dead pod next.
 */
#ifndef CONNTRACK_H
#define CONNTRACK_H

#include <stddef.h>
#include <stdint.h>

enum { ADDRESSES_MAX = 16 };

struct addresses {
	uint32_t list[ADDRESSES_MAX]; /* network byte order */
	size_t count;
};

/* IPv4 addresses of the network namespace that the caller is in. */
void addresses_read(struct addresses *addresses);

/*
 * Has the namespace of the socket forget UDP conversations, and TCP connections not yet accepted, that came from
 * elsewhere to one of the addresses. Returns how many, or -1 with errno.
 */
int conntrack_forget(int netlink, const struct addresses *addresses);

#endif
