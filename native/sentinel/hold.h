/*
 * A hold: the processes of some cgroups that the sentinel keeps stopped for one reason, which is a stop or the fence of a primary.
 * A process under several holds resumes when the last one is released.
 */
#ifndef HOLD_H
#define HOLD_H

#include "sentinel.h"

struct hold {
	struct hold *next;
	struct sentinel *sentinel;
	/* It is a fence: a process that runs again is stopped again, and no other request resumes it. */
	bool lasts;
	bool over; /* released */
	char **cgroups; /* ends with NULL; relative to /sys/fs/cgroup */
	struct processes excluded;
	struct processes stopped; /* by the sentinel, so that it resumes them */
	struct processes others; /* stopped by another program before, so that they stay as they are */
	size_t met; /* how often it has met a process that was new or did not stand */
	size_t found; /* number of new processes */
	size_t signalled, tidy_at;
	int64_t began, last; /* when it has sent the first and the latest signal */
};

/* Waits of the caller between two calls of hold_more(). Most processes stop within the first ticks. */
int64_t hold_tick(const struct hold *hold, int64_t now);

/* Puts a hold with its cgroups among those of the sentinel. It stops nothing yet. */
void hold_begin(struct sentinel *sentinel, struct hold *hold);

/*
 * Stops processes until no new one is found although all that were met had stopped, in several rounds at most. Having sent
 * the signal is not enough: a process in the middle of a fork stops after it, and its child does not exist yet. Returns 0 or
 * an errno: E2BIG if there are too many, EBUSY at a process that must not be disturbed. A fence goes on in any case.
 */
int hold_more(struct hold *hold, bool *complete);

/* One round. Returns 0 or an errno. */
int hold_round(struct hold *hold);

/* Returns how many of the processes still run. */
size_t hold_running(const struct hold *hold);

/* Resumes all processes that no other hold keeps stopped. It may be called again. */
void hold_release(struct hold *hold);

/* Ends a hold, which does not resume its processes, and frees what it has. */
void hold_end(struct hold *hold);

/* Resumes a process unless a hold keeps it stopped. True if it was resumed. */
bool holds_resume(struct sentinel *sentinel, struct process process);

/* Looks for new processes under each fence: a stop that ends must not resume those. */
void holds_look(struct sentinel *sentinel);

/* True if the process belongs to a primary that may not serve. It resumes with the primary then. Call holds_look() before. */
bool holds_fence(struct sentinel *sentinel, struct process process);

/* True if a process of one of these cgroups belongs to a primary that may not serve. */
bool holds_fence_any(struct sentinel *sentinel, char *const *cgroups);

/* Resumes the processes of an earlier sentinel that no hold has taken over. Returns the time of the next call. */
int64_t holds_due(struct sentinel *sentinel, int64_t now);

/* Returns the values of a key, ending with NULL; NULL if memory is short. */
char **list_read(const struct request *request, const char *key);
void list_free(char **list);

#endif
