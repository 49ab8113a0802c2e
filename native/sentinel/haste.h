/*
 * A thread that comes before all others of the node for a short time. Clients wait for its work, and right after a death every agent, the
 * operator and the API server want a processor, too. A tenant chooses how much work there is, and how long a call of the kernel takes. So the
 * time is limited, and what was too long counts until as much time has passed twenty times.
 */
#ifndef HASTE_H
#define HASTE_H

#include <stdbool.h>
#include <stdint.h>

/* Begin with zeros. */
struct haste {
	int64_t debt, since; /* what was used, and at which time: ns, monotonic */
	int64_t began; /* 0: the thread does not come first */
};

/* Lets the calling thread come first at its next wake, if it has time left. Other threads of the same priority come before. */
void haste_wait(struct haste *haste);

/* Begins the time for which the thread comes first. Without time it waits for a processor like every other one. */
void haste_begin(struct haste *haste);

/* Ends the haste if its time is over. Call it before each step that a tenant can multiply. */
void haste_check(struct haste *haste);

/* Ends the haste: the thread waits for a processor like every other one. */
void haste_end(struct haste *haste);

#endif
