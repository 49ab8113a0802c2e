/* Stops all processes of some cgroups, and resumes them whatever happens to the client. */
#ifndef STOP_H
#define STOP_H

#include "client.h"

enum { STOPS_MAX = 64 };

void stop_verb(struct client *client, const struct request *request);
void continue_verb(struct client *client, const struct request *request);
/* Detaches a stop from its connection until this deadline. */
void keep_verb(struct client *client, const struct request *request);
void stop_state_verb(struct client *client, const struct request *request);

/*
 * Call it when a spawn that a connection started for a stop has ended; `well`: with exit code 0. When all spawns have
 * ended that the stop waits for, its processes resume.
 */
void stop_work_ended(struct sentinel *sentinel, uint64_t serial, const char *name, bool well);

/* Ends the stops of a closed connection. */
void stops_continue_of(struct sentinel *sentinel, uint64_t serial);
/* Ends all stops that are not kept. */
void stops_continue_all(struct sentinel *sentinel);

/* Ends all stops, also those that are kept. */
void stops_end_all(struct sentinel *sentinel);

/* Continues the stops that an earlier sentinel has promised to keep. */
void stops_recover(struct sentinel *sentinel);

/* True while any stop is in effect. */
bool stops_hold(const struct sentinel *sentinel);

/* Ends overdue stops and checks settling stops. Returns the time of the next call. */
int64_t stops_due(struct sentinel *sentinel, int64_t now);

#endif
