/*
 * Removes the connections of dead pods from the connection tracking, one pod after the other, in a thread of its own and without
 * priority: the kernel walks through the connections of the whole machine, which takes 10 to 20 ms.
 */
#ifndef SWEEPER_H
#define SWEEPER_H

#include "address.h"

/* Takes copies of both. See conntrack_forget(). Without memory or threads the connections stay, and the log says so. */
void sweeper_forget(int netlink, const struct addresses *addresses);

#endif
