/* Answers CRIU's questions about connections that the restore will close. See connections.c. */
#pragma once

#include "work.h"

/* Call it before the stop: prepares the shared answers. Without it the kernel answers everything. */
void connections_prepare(void);

/* Zero: ask the kernel for the file system. */
int connections_file_system(int fd, void *status);

/* Returns -1 to open the file normally, else a descriptor that yields the fdinfo of a socket. */
int connections_open(const char *path);
