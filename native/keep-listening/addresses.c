#include "addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "number.h"

enum { BACKLOG = 4096 };

bool parse_address(const char *text, struct listening_address *address)
{
	char name[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;
	size_t length = slash ? (size_t)(slash - text) : sizeof name;
	struct sockaddr_in6 *ipv6 = &address->address;
	int64_t port;

	if (length >= sizeof name || (second && strcmp(second, "/6") != 0) ||
	    !parse_digits(slash + 1, second ? (size_t)(second - slash - 1) : strlen(slash + 1), UINT16_MAX, &port))
		return false;
	memcpy(name, text, length);
	name[length] = '\0';
	*address = (struct listening_address){ .only_ipv6 = second != NULL };
	ipv6->sin6_port = htons((uint16_t)port);
	ipv6->sin6_family = strchr(name, ':') ? AF_INET6 : AF_INET;
	if (ipv6->sin6_family == AF_INET6)
		return inet_pton(AF_INET6, name, &ipv6->sin6_addr) == 1;
	return inet_pton(AF_INET, name, &((struct sockaddr_in *)ipv6)->sin_addr) == 1;
}

static bool listen_at(int fd, const struct listening_address *address)
{
	const int yes = 1;
	const bool six = address->address.sin6_family == AF_INET6;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
	       setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) == 0 &&
	       (!six || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &address->only_ipv6, sizeof address->only_ipv6) == 0) &&
	       bind(fd, (const struct sockaddr *)&address->address, six ? sizeof address->address : sizeof(struct sockaddr_in)) == 0 &&
	       listen(fd, BACKLOG) == 0;
}

int open_address(const struct listening_address *address)
{
	int error, fd = socket(address->address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || listen_at(fd, address))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}
