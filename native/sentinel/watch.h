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

/* Ends redirects whose time is over. Returns the time of the next call, or INT64_MAX. */
int64_t watches_due(struct sentinel *sentinel, int64_t now);

#endif
