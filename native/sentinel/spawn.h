/*
 * Runs programs inside a container's namespaces, through `nsrun`, each with a deadline that no process of it outlives.
 */
#ifndef SPAWN_H
#define SPAWN_H

#include "client.h"

enum { SPAWNS_MAX = 64, FD_MAX = 1023 };

void spawn_verb(struct client *client, const struct request *request);
void kill_spawn_verb(struct client *client, const struct request *request);

/* Call it for each reaped child; it answers the client that requested the spawn. */
void spawn_ended(struct sentinel *sentinel, pid_t pid);

/* Kills the spawns of a closed connection. True if any exist; the connection's stops end after them. */
bool spawns_kill_of(struct sentinel *sentinel, uint64_t serial);

/* True if a connection has spawns. */
bool spawns_of(const struct sentinel *sentinel, uint64_t serial);

/* Returns the number of spawns that a connection started for the stop of that name and that still work. */
size_t spawns_during(const struct sentinel *sentinel, uint64_t serial, const char *stop);

/* True if another connection started a spawn for the stop of that name, and it still works. */
bool spawns_of_others_during(const struct sentinel *sentinel, uint64_t serial, const char *stop);

/* True if any spawn runs that is not detached. */
bool spawns_wait(const struct sentinel *sentinel);

/* Kills all spawns but the detached ones. */
void spawns_kill_all(struct sentinel *sentinel);

#endif
