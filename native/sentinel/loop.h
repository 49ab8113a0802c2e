/* The event loop: waits for descriptors and a timer, and calls their handlers. */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* An object with a descriptor; must be the first member of its owner. Freed only through loop_forget(). */
struct source {
	int fd; /* -1: closed */
	bool urgent; /* served before the other sources that are ready at the same time */
	void (*ready)(struct source *source, uint32_t events);
	struct source *next_forgotten;
};

struct loop {
	int epoll, timer;
	int64_t armed; /* expiry of the timer; 0: disarmed */
	struct source *forgotten;
	bool ended;
};

/* False with errno. */
bool loop_open(struct loop *loop);

/* Calls source->ready when one of `events` (EPOLL*) occurs. False with errno. */
bool loop_add(struct loop *loop, struct source *source, uint32_t events);
bool loop_change(struct loop *loop, struct source *source, uint32_t events);

/* Closes the source's descriptor. The source itself stays. */
void loop_close(struct loop *loop, struct source *source);

/* Closes the source's descriptor if it is open, and frees the source once no pending event can refer to it. */
void loop_forget(struct loop *loop, struct source *source);

/*
 * Runs until loop->ended. `due` does the work due at the given time (monotonic ns) and returns the time of its next
 * call, INT64_MAX for never. Returns -1 with errno if waiting fails.
 */
int loop_run(struct loop *loop, int64_t (*due)(void *context, int64_t now), void *context);

#endif
