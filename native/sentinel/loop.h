/* Waits for whatever the sentinel waits for, and calls whom it concerns. */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Something with a descriptor; the first member of what it belongs to. Freed only through loop_forget(). */
struct source {
	int fd; /* -1: closed */
	bool urgent; /* served before all others that are ready at the same time */
	void (*ready)(struct source *source, uint32_t events);
	struct source *next_forgotten;
};

struct loop {
	int epoll, timer;
	int64_t armed; /* what the timer is set to; 0: nothing */
	struct source *forgotten;
	bool ended;
};

/* False with errno. */
bool loop_open(struct loop *loop);

/* Calls source->ready when one of `events` (EPOLL*) is there. False with errno. */
bool loop_add(struct loop *loop, struct source *source, uint32_t events);
bool loop_change(struct loop *loop, struct source *source, uint32_t events);

/* Closes its descriptor. The source stays. */
void loop_close(struct loop *loop, struct source *source);

/* Closes its descriptor, if it still has one, and frees the source itself when nothing can refer to it any more. */
void loop_forget(struct loop *loop, struct source *source);

/*
 * Until loop->ended. `due` does what is due at the time it is given (monotonic ns) and returns when the next thing will
 * be, INT64_MAX for never. -1 with errno when waiting fails.
 */
int loop_run(struct loop *loop, int64_t (*due)(void *context, int64_t now), void *context);

#endif
