/*
 * Cleans up behind dead pods, one after the other, in a thread of its own: the kernel walks through the connections of the whole machine for
 * that, which takes 10 to 20 ms, or ends thousands of them.
 */
#ifndef SWEEPER_H
#define SWEEPER_H

#include "address.h"
#include "network.h"
#include "process.h"

/*
 * Removes connections from the connection tracking: see conntrack_forget(). Takes copies of both. Without memory or threads the connections
 * stay, and the log says so.
 */
void sweeper_forget(int netlink, const struct addresses *addresses);

/* Ends connections: see inbound_end(). The same applies, and `network` is that of the process. */
void sweeper_end(int netlink, const struct network *network, const struct addresses *addresses, struct process process);

/* From now on, sweeper_end() ends none in this network that begins after this call, whenever it was ordered. */
void sweeper_spare(const struct network *network);

#endif
