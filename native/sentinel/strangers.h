/*
 * Keeps strangers away from a primary: clients of another slot, whose redirect leads here still. This pod was the heir of that slot, and
 * the sentinel of its primary may not have heard that the pod has a slot of its own now. As `nft` would write the rules for IPv4:
 *
 *	table ip understudy-strangers {
 *		set from { type ipv4_addr; }                        # pods whose redirects may lead here
 *		chain input {
 *			type filter hook input priority -20;
 *			iif != lo ip saddr @from tcp sport >= 61000 tcp flags & (fin|syn|rst|ack) == syn reject with tcp reset
 *			iif != lo ct direction original ip saddr @from udp sport >= 61000 reject
 *		}
 *		chain forward { ... }                               # the same: once this pod is dead, its own redirect leads to its successor
 *	}
 *
 * The ports are those of redirected connections, see rules.h: the program in such a pod may be a client itself. The rules stay until
 * another list replaces them. An empty one removes them.
 */
#ifndef STRANGERS_H
#define STRANGERS_H

#include "client.h"

void strangers_verb(struct client *client, const struct request *request);

#endif
