/* Moving the calling process into cgroups, on every hierarchy there is (v1's and v2's). */
#ifndef CGROUP_JOIN_H
#define CGROUP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Joins all cgroups of process `pid`. On failure false with errno, and in `what` the path or hierarchy that failed.
 * Hierarchies that are not mounted here are passed over: nobody here could act on them.
 */
bool cgroup_join(pid_t pid, char *what, size_t size);

/*
 * Makes a cgroup `name` beside that of process 1, on every hierarchy, and joins it. Beside, not below: who kills the
 * cgroup of a pod, or of the node's first process, must not find the caller in it.
 */
bool cgroup_settle(const char *name, char *what, size_t size);

/* Removes those cgroups, in which nobody may live any more. As above. */
bool cgroup_remove(const char *name, char *what, size_t size);

#endif
