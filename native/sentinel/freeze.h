/*
 * The freeze of a primary: everything in its cgroups is stopped while it may not serve, also what begins to run there later.
 * Neither a deadline nor the end of a connection ends it. See docs/adr/0128-fencing.md.
 */
#ifndef FREEZE_H
#define FREEZE_H

#include "hold.h"

struct freeze {
	struct hold hold;
	bool on;
	bool settled, said; /* all have stopped; the log has it */
	int64_t since, settle_until, next;
};

/* Takes over the list of cgroups. Returns NULL with errno. */
struct freeze *freeze_new(char **cgroups);

/* Changes the cgroups, also while they are frozen; takes over the list. */
void freeze_cgroups(struct freeze *freeze, char **cgroups);

/* Stops everything, and keeps it stopped. `name` is for the log. Returns the time of the next call. */
int64_t freeze_due(struct sentinel *sentinel, struct freeze *freeze, const char *name, int64_t now);

/* Resumes what the sentinel, or an earlier one, has stopped. */
void freeze_thaw(struct freeze *freeze, const char *name);

/* Resumes it as well if it is frozen, and frees the freeze. */
void freeze_free(struct freeze *freeze, const char *name);

#endif
