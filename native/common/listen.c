#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512, SOCKET_FLAGS = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static int close_keeping_errno(int fd)
{
	int error = errno;

	close(fd);
	errno = error;
	return -1;
}

static int listen_at(union address *address, socklen_t length, int only_v6)
{
	int yes = 1, fd = socket(address->any.sa_family, SOCKET_FLAGS, 0);

	if (fd < 0)
		return -1;
	/* A restarted process must not fail because of old connections in TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
		return close_keeping_errno(fd);
	if (address->any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6) != 0)
		return close_keeping_errno(fd);
	if (bind(fd, &address->any, length) != 0 || listen(fd, BACKLOG) != 0)
		return close_keeping_errno(fd);
	return fd;
}

static int bound_port(int fd, uint16_t *port)
{
	union address address = { 0 };
	socklen_t length = sizeof address;

	if (getsockname(fd, &address.any, &length) != 0)
		return close_keeping_errno(fd);
	*port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	return fd;
}

int listen_tcp(const char *text, uint16_t *port)
{
	union address v4 = { .v4 = { .sin_family = AF_INET, .sin_port = htons(*port) } };
	union address v6 = { .v6 = { .sin6_family = AF_INET6, .sin6_port = htons(*port) } };
	int fd;

	if (text && inet_pton(AF_INET, text, &v4.v4.sin_addr) == 1) {
		fd = listen_at(&v4, sizeof v4.v4, 0);
	} else if (text && inet_pton(AF_INET6, text, &v6.v6.sin6_addr) == 1) {
		fd = listen_at(&v6, sizeof v6.v6, 1);
	} else if (text) {
		errno = EINVAL;
		return -1;
	} else {
		v6.v6.sin6_addr = in6addr_any;
		fd = listen_at(&v6, sizeof v6.v6, 0);
		if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
			fd = listen_at(&v4, sizeof v4.v4, 0);
	}
	return fd < 0 ? -1 : bound_port(fd, port);
}

/* Removes the socket of a dead process. EADDRINUSE if the process lives, or if the file is not a socket. */
static int remove_stale(union address *address)
{
	struct stat entry;
	int probe, connected;

	if (lstat(address->local.sun_path, &entry) != 0)
		return errno == ENOENT ? 0 : -1;
	probe = socket(AF_UNIX, SOCKET_FLAGS, 0);
	if (probe < 0)
		return -1;
	connected = connect(probe, &address->any, sizeof address->local);
	/* EAGAIN: a listener with a full backlog. */
	if (!S_ISSOCK(entry.st_mode) || connected == 0 || errno == EAGAIN) {
		close(probe);
		errno = EADDRINUSE;
		return -1;
	}
	close(probe);
	return unlink(address->local.sun_path);
}

int listen_unix(const char *path)
{
	union address address = { .local = { .sun_family = AF_UNIX } };
	size_t length = strlen(path);
	mode_t mask;
	int fd;

	if (length >= sizeof address.local.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.local.sun_path, path, length);
	if (remove_stale(&address) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
	if (fd < 0)
		return -1;
	/* bind() creates the file: only the umask guarantees that it is never open to other users. */
	mask = umask(0177);
	int bound = bind(fd, &address.any, sizeof address.local);
	umask(mask);
	if (bound != 0 || listen(fd, BACKLOG) != 0)
		return close_keeping_errno(fd);
	return fd;
}
