/* Who is in a cgroup. */
#ifndef CGROUP_PROCS_H
#define CGROUP_PROCS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a path, taken relative to /sys/fs/cgroup, stays below it. */
bool cgroup_path_is_inside(const char *path);

/*
 * Calls `meet` with every process in the cgroup `path` (relative to /sys/fs/cgroup) and in the cgroups below it, until
 * it returns false. False with errno when the cgroup cannot be read, or as `meet` has set it before it did.
 */
bool cgroup_each(const char *path, bool (*meet)(void *context, pid_t pid), void *context);

#endif
