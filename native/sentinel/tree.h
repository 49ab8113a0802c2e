/* A process and everything below it, seen from the host's pid namespace. */
#ifndef TREE_H
#define TREE_H

#include "process.h"

/*
 * Adds `root` and its descendants to `set`, parents before their children, and sends each `signal` as it is found (0:
 * none). With SIGSTOP nobody can escape: it looks again until two rounds have found nobody new. False with errno: ESRCH
 * when root is gone, ENOENT when this kernel does not tell children (CONFIG_PROC_CHILDREN), ENOMEM.
 */
bool tree_collect(struct process root, int signal, struct processes *set);

/* Adds the children of a process to `set`, nobody further down. */
bool tree_children(struct process parent, struct processes *set);

/* Reaps every child of the caller that has ended, but `kept`. */
void tree_reap_others(pid_t kept);

/* Whether `pid` is the caller or one of its ancestors: whom no order may kill or stop. */
bool tree_holds_self(pid_t pid);

/* Stops and then kills `root` and all below it, and whoever is in its session. Does not wait. Returns how many. */
size_t tree_kill(struct process root);

#endif
