/* Programs run inside a container's namespaces, through `enter`, each with a deadline that nothing outlives. */
#ifndef SPAWN_H
#define SPAWN_H

#include "client.h"

enum { SPAWNS_MAX = 64, FD_MAX = 1023 };

void spawn_verb(struct client *client, const struct request *request);
void kill_spawn_verb(struct client *client, const struct request *request);

/* To be called for each child that has been reaped; answers whoever asked for it. */
void spawn_ended(struct sentinel *sentinel, pid_t pid);

/* SIGKILL to all of it. */
void spawns_kill_all(struct sentinel *sentinel);

#endif
