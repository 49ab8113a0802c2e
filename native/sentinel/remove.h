/* Removes everything that the sentinel made on the node. */
#ifndef REMOVE_H
#define REMOVE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Unmounts our mounts below the directories (`directories` ends with NULL), removes these directories with their
 * contents, and removes the empty cgroups `cgroup` (NULL: none) beside that of process 1. Missing paths are no error.
 * Returns false with errno, and writes the path that failed to `what`.
 */
bool remove_all(char *const *directories, const char *cgroup, char *what, size_t size);

#endif
