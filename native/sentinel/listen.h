#ifndef LISTEN_H
#define LISTEN_H

#include <stdint.h>

/*
 * Listens on TCP `*port` of `address` (NULL: every address, IPv4 and, where the kernel has it, IPv6). Port 0 takes a
 * free one; *port is then set to it. Returns a non-blocking descriptor, or -1 and errno (EINVAL: not an IP address).
 */
int listen_tcp(const char *address, uint16_t *port);

/*
 * Listens on a unix socket at `path`, mode 0600. A socket left over by a process that is gone is replaced. Returns a
 * non-blocking descriptor, or -1 and errno (EADDRINUSE: a living process listens there, or it is no socket).
 */
int listen_unix(const char *path);

#endif
