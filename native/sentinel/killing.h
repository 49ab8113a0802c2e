/* Ends, or wakes, a tree of processes. */
#ifndef KILLING_H
#define KILLING_H

#include "client.h"

void tree_kill_verb(struct client *client, const struct request *request);
void tree_continue_verb(struct client *client, const struct request *request);

/* Looks who is gone. Returns when it wants to be called again. */
int64_t killings_due(struct sentinel *sentinel, int64_t now);

#endif
