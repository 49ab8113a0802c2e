/* Deaths: noticed at once, kept until somebody has taken note, and answered by a grave if there is one. */
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

/* Opens graves that were to last for a time of which nothing is left. Returns when to look again, or INT64_MAX. */
int64_t watches_due(struct sentinel *sentinel, int64_t now);

#endif
