/* Kills or resumes a tree of processes. */
#ifndef KILLING_H
#define KILLING_H

#include "client.h"

void tree_kill_verb(struct client *client, const struct request *request);
void tree_continue_verb(struct client *client, const struct request *request);

/* Checks which victims have ended. Returns the time of the next call. */
int64_t killings_due(struct sentinel *sentinel, int64_t now);

#endif
