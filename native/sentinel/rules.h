/*
 * The nftables rules of a redirect, as `nft` would write them, here for IPv4. Those for IPv6 are the same in a table `ip6 understudy`:
 *
 *	table ip understudy {
 *		map heir { type inet_proto : ipv4_addr; }           # empty while the pod lives
 *		set shut { type inet_proto; }                       # empty while the pod lives
 *		chain prerouting {
 *			type nat hook prerouting priority -150;
 *			iif != lo fib daddr type local tcp flags & (fin|syn|rst|ack) == syn dnat to meta l4proto map @heir
 *			iif != lo fib daddr type local meta l4proto udp dnat to meta l4proto map @heir
 *		}
 *		chain postrouting {
 *			type nat hook postrouting priority 90;
 *			ct status dnat fib saddr type != local masquerade to :61000-65535
 *		}
 *		chain input {
 *			type filter hook input priority -10;
 *			iif != lo tcp flags & (fin|syn|rst|ack) == syn meta l4proto @shut reject with tcp reset
 *			iif != lo ct direction original meta l4proto udp meta l4proto @shut reject
 *		}
 *	}
 *
 * The heir has one address. In the table of its family the death fills the map, in the other one the set: a client of the other
 * family cannot reach the heir through this pod, and must not reach the app that the kubelet starts here.
 *
 * The TCP rule matches only a SYN: a connection can be older than the connection tracking in this namespace, and its
 * packets must not count as a new connection. The pod's own traffic (which may match other DNAT rules, e.g. a mesh's)
 * is not masqueraded. By the ports the node of the heir tells redirected connections from those that the pod makes itself: see
 * strangers.h.
 */
#ifndef RULES_H
#define RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "nfnetlink.h"

enum { RULES_BYTES = 8192, ELEMENTS_BYTES = 1024 };

/* Redirected connections reach the heir from this port or a higher one. Linux gives a program no such port unless it, or its pod, asks for that. */
enum { REDIRECT_PORTS_FROM = 61000 };

/*
 * Replaces the tables in one transaction. With an heir they hold it from the beginning; with NULL their maps and sets are empty.
 * Without `both`, only the table of IPv4 is replaced, without `shut` and its chain: for kernels that lack a part of the rest. The
 * heir is of IPv4 then.
 */
void rules_prepare(struct batch *batch, void *bytes, size_t room, bool both, const struct address *heir);

/* Puts the heir in, replacing any other: every connection from the next one on goes to the heir. */
void rules_close(struct batch *batch, void *bytes, size_t room, bool both, const struct address *heir);

/* Empties the maps and sets. */
void rules_open(struct batch *batch, void *bytes, size_t room, bool both);

#endif
