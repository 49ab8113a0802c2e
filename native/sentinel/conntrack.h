/*
 * Removes the dead pod's own connections from the kernel's connection tracking. A NAT rule decides for the first packet
 * only: a client that keeps its UDP socket, whose SYN was dropped, or that uses the port of a reset connection again, would reach the
 * next listener in the dead pod.
 */
#ifndef CONNTRACK_H
#define CONNTRACK_H

#include "address.h"

/*
 * Deletes UDP conversations, and TCP connections that are not yet accepted or were reset, from the connection tracking of the socket's
 * namespace, if they came from elsewhere to one of the addresses. Returns their number, or -1 with errno.
 */
int conntrack_forget(int netlink, const struct addresses *addresses);

#endif
