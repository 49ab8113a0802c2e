/*
 * What a grave is made of, as `nft` would write it:
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
 * Only a SYN begins a TCP connection: a packet of one that is older than the connection tracking in this namespace must
 * not be taken for a new one. What the pod sends itself (other DNAT rules in it, say a mesh's) is not masqueraded.
 */
#ifndef RULES_H
#define RULES_H

#include <stdint.h>

#include "nfnetlink.h"

enum { RULES_BYTES = 4096, ELEMENTS_BYTES = 512 };

/*
 * Makes the table anew, in one step with what was there before. With an heir (network byte order) its map has him from
 * the beginning; 0: empty.
 */
void rules_prepare(struct batch *batch, void *bytes, size_t room, uint32_t heir);

/* Puts the heir into the map, in the place of any other: from the next connection on everything is his. */
void rules_close(struct batch *batch, void *bytes, size_t room, uint32_t heir);

/* Empties the map. */
void rules_open(struct batch *batch, void *bytes, size_t room);

#endif
