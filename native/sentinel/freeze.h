/*
 * The freeze of a primary: everything in its cgroups is stopped while it may not serve, also what begins to run there later.
 * Neither a deadline nor the end of a connection ends it. See docs/adr/0128-fencing.md.
 */
#ifndef FREEZE_H
#define FREEZE_H

#include "halt.h"

struct freeze {
	struct halt halt;
	bool on;
	bool settled, said; /* all have stopped; the log has it */
	int64_t since, settle_until, next;
};

/* Takes over the list of cgroups. Returns NULL with errno. */
struct freeze *freeze_new(char **cgroups);

/* Stops everything, and keeps it stopped. `name` is for the log. Returns the time of the next call. */
int64_t freeze_due(struct sentinel *sentinel, struct freeze *freeze, const char *name, int64_t now);

/* Takes over what an earlier sentinel has frozen in these cgroups: it resumes with the next thaw. */
void freeze_adopt(struct sentinel *sentinel, struct freeze *freeze);

/* Returns when the freeze wants its next call. A freeze that has not begun is first. */
int64_t freeze_next(const struct freeze *freeze);

/* Resumes what the sentinel, or an earlier one, has stopped. */
void freeze_thaw(struct freeze *freeze, const char *name);

/* Resumes it as well if it is frozen, and frees the freeze. */
void freeze_free(struct freeze *freeze, const char *name);

#endif
