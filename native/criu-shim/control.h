/* Protects the sockets of CRIU that other processes of the network namespace can see. See control.c. */
#pragma once

#include "message.h"

/* Call it before the stop. Zero: it failed, and CRIU must not begin. */
int control_prepare(void);

/* True if the gate was passed and the dump includes this process. */
int is_dumped(int pid);

/* Zero: the caller sends the message unchanged. Else it was sent, or failed, with that answer. */
int control_sends(int fd, const struct message *message, int flags, long *answer);

/* Zero: the caller waits as requested. */
int control_waits(const int *word, long operation, long value, long *answer);

/* True for the socket at which CRIU waits for the parasite. */
int control_is_door(int fd);

/* Call it at CRIU's exit: writes the parasite's lines to the log. */
void control_end(void);
