/*
 * Watches processes. The sentinel notices a death at once, redirects the pod's connections if it has a grave, and
 * reports the death until a client removes the watch.
 */
#ifndef WATCH_H
#define WATCH_H

#include "client.h"

enum { WATCHES_MAX = 4096 };

void watch_verb(struct client *client, const struct request *request);
void unwatch_verb(struct client *client, const struct request *request);
void watches_verb(struct client *client, const struct request *request);
void grave_verb(struct client *client, const struct request *request);
void bury_verb(struct client *client, const struct request *request);
void exhume_verb(struct client *client, const struct request *request);

/*
 * Call it when a process may have begun to end. If none of its threads executes its program any more, its connections are redirected,
 * and its death is reported unless it has children, which execute theirs for a little longer.
 */
void watch_exiting(struct sentinel *sentinel, pid_t pid);

/* The same, once the first thread has begun to end: the other threads may follow. Looks again for some milliseconds. */
void watch_first_ended(struct sentinel *sentinel, pid_t pid);

/* Writes the numbers of watched processes that live, as many as there is room for. Returns how many it has written. */
size_t watched_pids(const struct sentinel *sentinel, pid_t *pids, size_t room);

/* Ends redirects whose time is over, and looks at threads again. Returns the time of the next call, or INT64_MAX. */
int64_t watches_due(struct sentinel *sentinel, int64_t now);

#endif
