/* Leaving nothing on the node. */
#ifndef REMOVE_H
#define REMOVE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Unmounts what we have mounted below the directories (`directories` ends with NULL), removes them with all that is in them,
 * and the empty cgroups `cgroup` (NULL: none) beside that of process 1. What is not there is fine. False with errno, and
 * `what` says of which path.
 */
bool remove_all(char *const *directories, const char *cgroup, char *what, size_t size);

#endif
