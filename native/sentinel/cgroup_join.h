/* Moves the calling process into cgroups, on every hierarchy (cgroup v1 and v2). */
#ifndef CGROUP_JOIN_H
#define CGROUP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Joins all cgroups of process `pid`. On failure returns false with errno, and writes the path or hierarchy that failed
 * to `what`. It skips hierarchies that are not mounted here: no process on this node can act on them.
 */
bool cgroup_join(pid_t pid, char *what, size_t size);

/*
 * Makes a cgroup `name` beside that of process 1, on every hierarchy, and joins it. The new cgroup is a sibling, not a
 * child: killing the cgroup of a pod, or of the node's first process, must not kill the caller.
 */
bool cgroup_settle(const char *name, char *what, size_t size);

/* Removes those cgroups, which must be empty of processes. Reports failures as above. */
bool cgroup_remove(const char *name, char *what, size_t size);

#endif
