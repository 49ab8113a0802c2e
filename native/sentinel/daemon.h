/* Leaving whoever started us. */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>

/* Takes the lock `PATH.lock`: -1 with errno, EWOULDBLOCK when another process has it. Held until we end. */
int instance_lock(const char *path);

/*
 * Goes on in a grandchild with a session of its own, no terminal and no descriptors of the caller but the standard
 * ones. The caller is left waiting; it returns the code given to daemon_ready(), or 1 if we end before.
 * False with errno.
 */
bool daemon_begin(int *ready);

/* Lets the caller go, and its standard descriptors with it, but for errors when these have no other place to go. */
void daemon_ready(int ready, bool keeps_errors);

#endif
