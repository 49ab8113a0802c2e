/* Work inside the network namespace of a pod. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

/* A network namespace; containers of a pod share one. */
struct network {
	uint64_t device, inode;
};

bool network_same(const struct network *a, const struct network *b);

/*
 * Calls `inside` in the network namespace of the process, and returns its result: a descriptor, or -1 with errno. EPERM also
 * means the node's own namespace: rules there would concern the traffic of the node.
 */
int network_enter(struct process process, int (*inside)(void *context, const struct network *network), void *context);

#endif
