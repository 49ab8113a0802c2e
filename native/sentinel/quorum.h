/* Until when a primary may serve: the rule of src/slot/decide/fence/primary.ts, where its reasons are. */
#ifndef QUORUM_H
#define QUORUM_H

#include <stddef.h>
#include <stdint.h>

enum { VOTERS_MAX = 16 };

/* The voters of one set, as indices. */
struct voters {
	size_t count;
	uint8_t list[VOTERS_MAX];
};

/* A time before all others. */
extern const int64_t never_ns;

/*
 * Returns until when the primary may serve, by its monotonic clock, ns. `sent`: by voter, when the latest beat was sent that
 * this voter has answered, or never_ns. It needs enough answers of every one of the `sets`.
 */
int64_t serves_until(const struct voters *sets, size_t count, const int64_t *sent, int64_t timeout_ns);

#endif
