/* Programs run inside a container's namespaces, through `enter`, each with a deadline that nothing outlives. */
#ifndef SPAWN_H
#define SPAWN_H

#include "client.h"

enum { SPAWNS_MAX = 64, FD_MAX = 1023 };

void spawn_verb(struct client *client, const struct request *request);
void kill_spawn_verb(struct client *client, const struct request *request);

/* To be called for each child that has been reaped; answers whoever asked for it. */
void spawn_ended(struct sentinel *sentinel, pid_t pid);

/* Kills what a connection has started that is no more; whether there is anything. What it stopped goes on after that. */
bool spawns_kill_of(struct sentinel *sentinel, uint64_t serial);

/* Whether something is there that a connection has started. */
bool spawns_of(const struct sentinel *sentinel, uint64_t serial);

/* How many are at work that a connection has started for a stop of that name. */
size_t spawns_during(const struct sentinel *sentinel, uint64_t serial, const char *stop);

/* Whether something runs whose end somebody waits for. */
bool spawns_wait(const struct sentinel *sentinel);

/* SIGKILL to all of it, but what is detached. */
void spawns_kill_all(struct sentinel *sentinel);

#endif
