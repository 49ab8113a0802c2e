/*
 * Ends the connections that clients keep with a pod that begins to die. The kernel closes them itself, but only after it has freed the
 * memory: until then the clients wait for answers of a process that executes nothing any more.
 */
#ifndef INBOUND_H
#define INBOUND_H

#include <stdatomic.h>

#include "address.h"
#include "haste.h"
#include "process.h"

/*
 * Resets the TCP connections from elsewhere to these addresses, at ports on which the process listens. `netlink` is a socket for
 * NETLINK_SOCK_DIAG in its namespace. Returns 0 or an errno: EOPNOTSUPP: this kernel resets none. The process may have closed its
 * descriptors meanwhile: then its connections have ended. It checks the haste on the way. Connections that begin after another thread has set `spared` stay.
 */
int inbound_end(int netlink, const struct addresses *addresses, struct process process, struct haste *haste,
		const atomic_bool *spared);

#endif
