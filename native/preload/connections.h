/* What need not be asked of connections that CRIU will close. See connections.c. */
#pragma once

#include "work.h"

/* Before the stop: what is the same for all of them. Without it everything is asked, as before. */
void connections_prepare(void);

/* Zero: the file system is to be asked for. */
int connections_file_system(int fd, void *status);

/* -1: the file is opened as any other. Else the descriptor of one that says what is known of a socket. */
int connections_open(const char *path);
