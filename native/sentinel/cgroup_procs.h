/* Lists the processes of a cgroup. */
#ifndef CGROUP_PROCS_H
#define CGROUP_PROCS_H

#include <stdbool.h>
#include <sys/types.h>

/* True if a path, taken relative to /sys/fs/cgroup, stays below it. */
bool cgroup_path_is_inside(const char *path);

/* True if one of these cgroups exists. The list ends with NULL. */
bool cgroup_any(char *const *paths);

/*
 * Calls `meet` with every process in the cgroup `path` (relative to /sys/fs/cgroup) and in its descendants, until
 * `meet` returns false. Returns false with errno if it cannot read the cgroup, or with the errno that `meet` has set.
 */
bool cgroup_each(const char *path, bool (*meet)(void *context, pid_t pid), void *context);

#endif
