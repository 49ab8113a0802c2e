#ifndef LISTEN_H
#define LISTEN_H

#include <stdint.h>

/*
 * Listens on TCP `*port` of `address` (NULL: every address, IPv4 and, if the kernel supports it, IPv6). For port 0 the
 * kernel picks a free port, and *port is set to it. Returns a non-blocking descriptor, or -1 and errno (EINVAL: not an
 * IP address).
 */
int listen_tcp(const char *address, uint16_t *port);

/*
 * Listens on a unix socket at `path`, mode 0600. Replaces the stale socket of a dead process. Returns a non-blocking
 * descriptor, or -1 and errno (EADDRINUSE: a living process listens there, or the file is not a socket).
 */
int listen_unix(const char *path);

#endif
