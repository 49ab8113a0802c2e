/* Stops all processes of some cgroups, and lets them go on whatever happens to whoever asked. */
#ifndef STOP_H
#define STOP_H

#include "client.h"

enum { STOPS_MAX = 64 };

void stop_verb(struct client *client, const struct request *request);
void continue_verb(struct client *client, const struct request *request);
/* From now on it outlives the connection that asked for it, until this deadline. */
void keep_verb(struct client *client, const struct request *request);
void stop_state_verb(struct client *client, const struct request *request);

/*
 * Something has ended that a connection had started for a stop; `well`: with exit code 0. When all of it has that the stop
 * was told to wait for, those who stand go on.
 */
void stop_work_ended(struct sentinel *sentinel, uint64_t serial, const char *name, bool well);

/* The connection is closed: what it stopped goes on. */
void stops_continue_of(struct sentinel *sentinel, uint64_t serial);
void stops_continue_all(struct sentinel *sentinel);

/* Whether somebody stands still for somebody. */
bool stops_hold(const struct sentinel *sentinel);

/* Continues what is overdue and looks at what is being stopped. Returns when it wants to be called again. */
int64_t stops_due(struct sentinel *sentinel, int64_t now);

#endif
