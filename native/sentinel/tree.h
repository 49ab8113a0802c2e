/* A process and its descendants, seen from the host's pid namespace. */
#ifndef TREE_H
#define TREE_H

#include "process.h"

/*
 * Adds `root` and its descendants to `set`, parents before their children, and sends each `signal` when it finds it (0:
 * none). Returns false with errno: ESRCH if root is gone, ENOENT if this kernel does not list children
 * (CONFIG_PROC_CHILDREN), ENOMEM.
 */
bool tree_collect(struct process root, int signal, struct processes *set);

/*
 * Searches for processes forked meanwhile and sends them SIGSTOP. Sets `complete` if all processes of `set` had stopped
 * before the search and the search found no new one: then the set misses no process.
 */
bool tree_collect_again(struct processes *set, bool *complete);

/* Adds the direct children of a process to `set`. */
bool tree_children(struct process parent, struct processes *set);

/* Reaps every ended child of the caller but `kept`. */
void tree_reap_others(pid_t kept);

/* True if `pid` is the caller or one of its ancestors, which no request may kill or stop. */
bool tree_holds_self(pid_t pid);

/*
 * Stops and then kills `root`, its descendants, and the session that `root` leads. Waits at most a tenth of a second
 * until they have stopped, but not until they have ended. Returns the number of killed processes.
 */
size_t tree_kill(struct process root);

#endif
