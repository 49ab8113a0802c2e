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

#include "committer.h"
#include "network.h"

struct deadman {
	struct committer *committer; /* keeps the namespace alive until deadman_free() */
	struct process process;
	int64_t until; /* when the elements in the set end at the latest, by the monotonic clock; INT64_MAX: not known */
	int64_t again; /* not before then: the kernel was slow */
};

/*
 * Prepares the switch in the network namespace of `process`: nothing passes after `until`. `kept`: an earlier sentinel has
 * prepared it, and its elements stay. Returns NULL with errno; see network_enter() and committer_commit().
 */
struct deadman *deadman_arm(struct process process, int64_t until, bool kept);

/*
 * Lets packets pass until then. A failure is logged: the kernel drops them in time. After two transactions that took long, or one
 * that is not done yet, it does nothing for ten times as long.
 */
void deadman_renew(struct deadman *deadman, int64_t until);

/*
 * Returns when to renew it again, because its elements may end later than that; INT64_MAX: they do not. Its own end tells when
 * a primary that serves is to be renewed.
 */
int64_t deadman_due(const struct deadman *deadman, int64_t end);

/* Removes the rules, and frees the switch. Returns 0, or EBUSY if an earlier change is not done yet: nothing has changed then. */
int deadman_disarm(struct deadman *deadman);

/* Frees the switch. Its rules stay, and with them what they do. */
void deadman_free(struct deadman *deadman);

#endif
