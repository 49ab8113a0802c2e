/* Detaches this process from its caller. */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>

/* Takes the lock `PATH.lock` until the process ends. Returns -1 with errno, EWOULDBLOCK if another process holds it. */
int instance_lock(const char *path);

/*
 * Continues in a grandchild with a session of its own, no terminal, and only the standard descriptors of the caller.
 * The caller waits; it exits with the code given to daemon_ready(), or with 1 if the grandchild ends first. False with
 * errno.
 */
bool daemon_begin(int *ready);

/*
 * Ends the caller's wait and closes its standard descriptors. With `keeps_errors` standard error stays open, for errors
 * that have no log to go to.
 */
void daemon_ready(int ready, bool keeps_errors);

#endif
