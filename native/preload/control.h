/* Sockets by which CRIU speaks to its own, where others of the network can see them. See control.c. */
#pragma once

#include "message.h"

/* Before the stop. Zero: it cannot be done, and CRIU must not begin. */
int control_prepare(void);

/* Of a gate that was passed: whether it is one of those that are dumped. */
int is_dumped(int pid);

/* Zero: it is to be sent as it is. Else it was sent, or failed, with that answer. */
int control_sends(int fd, const struct message *message, int flags, long *answer);

/* Zero: it is to be waited as it was asked. */
int control_waits(const int *word, long operation, long value, long *answer);

/* Whether CRIU waits there for its own code. */
int control_is_door(int fd);

/* CRIU ends: what its code in the processes had to say. */
void control_end(void);
