#ifndef PID1_H
#define PID1_H

#include <signal.h>
#include <sys/types.h>

/*
 * Blocks every signal and returns a descriptor that reads them instead (-1 and errno on failure). PID 1 has no default
 * actions, and a signal read from a descriptor cannot be lost between a check and a sleep. `previous` gets the mask
 * that a child must restore before its exec.
 */
int signals_open(sigset_t *previous);

typedef void (*on_reaped)(void *context, pid_t pid, int status);

/* Reaps every child that has ended; calls `reaped`, unless NULL, for each. */
void reap_children(void *context, on_reaped reaped);

/* Returns the exit code for a wait status: the child's own, or 128 + the signal that killed it. */
int exit_code_of(int status);

#endif
