/*
 * A halt: the processes of some cgroups that the sentinel keeps stopped for one reason, which is a stop or the fence of a primary.
 * A process under several halts resumes when the last one is released.
 */
#ifndef HALT_H
#define HALT_H

#include "sentinel.h"

struct halt {
	struct halt *next;
	struct sentinel *sentinel;
	/* It is a fence: a process that runs again is stopped again, and no other request resumes it. */
	bool lasts;
	bool over; /* released */
	/* The name of the stop, if it is kept until `until` whatever becomes of this sentinel; else NULL. */
	const char *kept;
	int64_t until;
	bool recovered; /* from an earlier sentinel, whose CRIU may still work on its processes */
	char **cgroups; /* ends with NULL; relative to /sys/fs/cgroup */
	struct processes excluded;
	struct processes stopped; /* by the sentinel, so that it resumes them */
	struct processes others; /* stopped by another program before, so that they stay as they are */
	size_t met; /* how often it has met a process that was new or did not stand */
	size_t found; /* number of new processes */
	size_t signalled, tidy_at;
	int64_t began, last; /* when it has sent the first and the latest signal */
	int64_t took; /* how long the latest round took, ns */
};

/*
 * Waits of the caller between two calls of halt_more(). Most processes stop within the first ticks. With many processes it is as
 * long as a round: they need the processor to stop.
 */
int64_t halt_tick(const struct halt *halt, int64_t now);

/* Puts a halt with its cgroups among those of the sentinel. It stops nothing yet. */
void halt_begin(struct sentinel *sentinel, struct halt *halt);

/*
 * Stops processes until no new one is found although all that were met had stopped, in a few rounds at most. Having sent
 * the signal is not enough: a process in the middle of a fork stops after it, and its child does not exist yet. Returns 0 or
 * an errno: E2BIG if there are too many, EBUSY at a process that must not be disturbed. Neither ends a fence.
 */
int halt_more(struct halt *halt, bool *complete);

/* One round. Returns 0 or an errno. */
int halt_round(struct halt *halt);

/* Returns how many of the processes still run. */
size_t halt_running(const struct halt *halt);

/*
 * Records that the processes stay stopped until then, whatever becomes of this sentinel. `name` is that of the stop, and the caller's.
 * False if that could not be written.
 */
bool halt_keep(struct halt *halt, const char *name, int64_t until);

/* True if a halt keeps the process stopped. */
bool halts_have(const struct sentinel *sentinel, struct process process);

/* Resumes all processes that no other halt keeps stopped. It may be called again. */
void halt_release(struct halt *halt);

/* Ends a halt, which does not resume its processes, and frees what it has. */
void halt_end(struct halt *halt);

/* Resumes a process unless a halt keeps it stopped. True if it was resumed. */
bool halts_resume(struct sentinel *sentinel, struct process process);

/* Looks for new processes under each fence: a stop that ends must not resume those. False if there is no fence. */
bool halts_look(struct sentinel *sentinel);

/* True if the process belongs to a primary that may not serve. It resumes with the primary then. Call halts_look() before. */
bool halts_fence(struct sentinel *sentinel, struct process process);

/* True if a process of one of these cgroups belongs to a primary that may not serve. */
bool halts_fence_any(struct sentinel *sentinel, char *const *cgroups);

/* Resumes the processes of an earlier sentinel that no halt has taken over. Returns the time of the next call. */
int64_t halts_due(struct sentinel *sentinel, int64_t now);

#endif
