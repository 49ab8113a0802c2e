/* A process and everything below it, seen from the host's pid namespace. */
#ifndef TREE_H
#define TREE_H

#include "process.h"

/*
 * Adds `root` and its descendants to `set`, parents before their children, and sends each `signal` as it is found (0:
 * none). False with errno: ESRCH when root is gone, ENOENT when this kernel does not tell children
 * (CONFIG_PROC_CHILDREN), ENOMEM.
 */
bool tree_collect(struct process root, int signal, struct processes *set);

/*
 * Looks again, for who was forked meanwhile; those are sent SIGSTOP. Sets `complete` when there was nobody new although
 * all in `set` had come to a stand: then nobody can be missing.
 */
bool tree_collect_again(struct processes *set, bool *complete);

/* Adds the children of a process to `set`, nobody further down. */
bool tree_children(struct process parent, struct processes *set);

/* Reaps every child of the caller that has ended, but `kept`. */
void tree_reap_others(pid_t kept);

/* Whether `pid` is the caller or one of its ancestors: whom no order may kill or stop. */
bool tree_holds_self(pid_t pid);

/*
 * Stops and then kills `root` and all below it, and whoever is in its session. Waits until they have stopped, a tenth
 * of a second at most, not until they have ended. Returns how many.
 */
size_t tree_kill(struct process root);

#endif
