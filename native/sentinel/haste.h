/*
 * A thread that comes before all others of the node for a short time. Clients wait for its work, and right after a death every agent, the
 * operator and the API server want a processor, too. A tenant chooses how much work there is, so the time is limited.
 */
#ifndef HASTE_H
#define HASTE_H

#include <stdint.h>

struct haste {
	int64_t until; /* monotonic; 0: it is over */
};

/* Lets the calling thread come first from now on, also at its next wake. Its time begins at haste_begin(). */
void haste_wait(void);

/* Begins the time for which the thread comes first. */
void haste_begin(struct haste *haste);

/* Ends the haste if its time is over. Call it before each step that a tenant can multiply. */
void haste_check(struct haste *haste);

/* Ends the haste: the thread waits for a processor like every other one. */
void haste_end(struct haste *haste);

#endif
