/* The TCP sockets of a network namespace, as the kernel lists and ends them (sock_diag). */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include <linux/inet_diag.h>
#include <stdint.h>

#include "netlink.h"

/* Sets of states, by the kernel's numbers. */
enum {
	LISTENING = 1 << 10,
	ESTABLISHED = 1 << 1,
	/* The client has closed its side. */
	CLOSE_WAIT = 1 << 8,
	/* Established, both FIN waits, close wait, last ACK, closing: a side may still wait for the other. */
	UNFINISHED = ESTABLISHED | 1 << 4 | 1 << 5 | CLOSE_WAIT | 1 << 9 | 1 << 11,
};

/*
 * Calls `each` for every socket of the family in one of the states. `netlink` is a socket for NETLINK_SOCK_DIAG. `extensions` is a set of
 * bits, such as 1 << (INET_DIAG_INFO - 1), and `more` has an attribute for each. Returns 0 or an errno.
 */
int connections_each(int netlink, int family, uint32_t states, uint8_t extensions,
		     void (*each)(void *context, const struct inet_diag_msg *one, struct span more), void *context);

/* Resets one. Returns 0 or an errno: ENOENT or ESTALE: it has ended by itself; EOPNOTSUPP: this kernel ends none. */
int connections_end(int netlink, int family, const struct inet_diag_sockid *id);

#endif
