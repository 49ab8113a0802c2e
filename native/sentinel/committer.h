/*
 * Commits batches to the nftables of one network namespace, and does not wait longer than the kernel usually takes. The kernel
 * does one transaction of a namespace after the other, and a pod that may change its own tables can make one that takes
 * seconds. Such a pod has to wait for itself, and no other pod of the node for it.
 */
#ifndef COMMITTER_H
#define COMMITTER_H

#include <stdbool.h>

#include "clock.h"
#include "network.h"
#include "nfnetlink.h"

/*
 * COMMIT_BYTES: the longest batch. A transaction takes the kernel a fraction of a millisecond, but another program may have the
 * processor. PATIENT_NS is for what is done once for a pod, and PROMPT_NS for what is repeated all the time.
 */
enum { COMMIT_BYTES = 8192, PATIENT_NS = 500 * NS_PER_MS, PROMPT_NS = 20 * NS_PER_MS };

struct committer;

/*
 * Takes the NETLINK_NETFILTER socket, also if it fails: NULL with errno. The socket keeps the namespace alive until
 * committer_free(). Call nothing of this inside the namespace: a thread that begins there would keep it alive as well.
 */
struct committer *committer_open(int netlink);

/* Opens one in the network namespace of a process. NULL with errno; see network_enter(). */
struct committer *committer_enter(struct process process);

/*
 * Waits for that long at most. Returns 0 or an errno. EINPROGRESS: it takes longer, and the kernel will do it unless it is refused. EBUSY: an earlier batch of
 * this committer is not done yet, so this one was not begun.
 */
int committer_commit(struct committer *committer, const struct batch *batch, int64_t patience_ns);

/* Returns what became of the latest batch: 0 or an errno, EBUSY while it is not done. */
int committer_result(struct committer *committer);

/* A batch that is not done yet is still done by the kernel. */
void committer_free(struct committer *committer);

#endif
