/*
 * The nftables rules of a redirect, as `nft` would write them:
 *
 *	table ip understudy {
 *		map heir { type inet_proto : ipv4_addr; }           # empty while the pod lives
 *		chain prerouting {
 *			type nat hook prerouting priority -150;
 *			iif != lo fib daddr type local tcp flags & (fin|syn|rst|ack) == syn dnat to meta l4proto map @heir
 *			iif != lo fib daddr type local meta l4proto udp dnat to meta l4proto map @heir
 *		}
 *		chain postrouting {
 *			type nat hook postrouting priority 90;
 *			ct status dnat fib saddr type != local masquerade
 *		}
 *	}
 *
 * The TCP rule matches only a SYN: a connection can be older than the connection tracking in this namespace, and its
 * packets must not count as a new connection. The pod's own traffic (which may match other DNAT rules, e.g. a mesh's)
 * is not masqueraded.
 */
#ifndef RULES_H
#define RULES_H

#include <stdint.h>

#include "nfnetlink.h"

enum { RULES_BYTES = 4096, ELEMENTS_BYTES = 512 };

/*
 * Replaces the table in one transaction. With an heir (network byte order) the map holds it from the beginning; with 0
 * the map is empty.
 */
void rules_prepare(struct batch *batch, void *bytes, size_t room, uint32_t heir);

/* Puts the heir into the map, replacing any other: every connection from the next one on goes to the heir. */
void rules_close(struct batch *batch, void *bytes, size_t room, uint32_t heir);

/* Empties the map. */
void rules_open(struct batch *batch, void *bytes, size_t room);

#endif
