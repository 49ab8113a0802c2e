/*
 * A dead man's switch in the network namespace of a primary, as `nft` would write it:
 *
 *	table inet understudy-fence {
 *		set serves { type nf_proto; flags timeout; }        # ipv4 and ipv6, until the primary may serve no longer
 *		chain input {
 *			type filter hook input priority -450;
 *			iif != lo meta nfproto != @serves drop
 *		}
 *		chain output {
 *			type filter hook output priority -450;
 *			oif != lo meta nfproto != @serves drop
 *		}
 *	}
 *
 * The kernel removes the elements by itself. So no packet leaves or reaches the app after that time, whatever has become of the
 * sentinel. Forwarded packets pass: a redirect to the heir works. See docs/adr/0128-fencing.md.
 */
#ifndef DEADMAN_H
#define DEADMAN_H

#include "network.h"

struct deadman {
	int netlink; /* keeps the namespace alive until deadman_free() */
	struct process process;
	int64_t until; /* when the elements in the set end at the latest, by the monotonic clock */
	int64_t again; /* not before then: the kernel was slow */
};

/*
 * Prepares the switch in the network namespace of `process`: nothing passes after `until`. `kept`: an earlier sentinel has
 * prepared it, and its elements stay. Returns NULL with errno; see network_enter().
 */
struct deadman *deadman_arm(struct process process, int64_t until, bool kept);

/*
 * Lets packets pass until then. A failure is logged: the kernel drops them in time. After two transactions that took long it does
 * nothing for ten times as long as the latter.
 */
void deadman_renew(struct deadman *deadman, int64_t until);

/* Removes the rules, and frees the switch. */
void deadman_disarm(struct deadman *deadman);

/* Frees the switch. Its rules stay, and with them what they do. */
void deadman_free(struct deadman *deadman);

#endif
