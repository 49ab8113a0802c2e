#include "queues.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "connections.h"
#include "netlink.h"

enum { PATIENCE_MS = 1000, WAKE_MS = 100 };

struct kept kept[MOST_SOCKETS];
int kept_count;

/* Returns for how long the peer of a connection has sent nothing, ms; 0: the kernel does not say. */
static unsigned silent_ms(struct span attributes)
{
	struct tcp_info info = { 0 };
	struct span found = netlink_attribute(attributes, INET_DIAG_INFO);

	if (found.at)
		memcpy(&info, found.at, found.length < sizeof info ? found.length : sizeof info);
	return info.tcpi_last_data_recv;
}

/* Returns the kept socket of a port; -1: there are several, and the kernel does not say which one a connection waits for. */
static int only_one_of(in_port_t port)
{
	int found = -1;

	for (int i = 0; i < kept_count; i++)
		if (kept[i].address.sin6_port == port) {
			if (found >= 0)
				return -1;
			found = i;
		}
	return found;
}

static void count(void *context, const struct inet_diag_msg *one, struct span more)
{
	int at;

	(void)context;
	/* A connection that no process has accepted has no file. */
	if (one->idiag_inode != 0 || silent_ms(more) <= PATIENCE_MS)
		return;
	at = only_one_of(one->id.idiag_sport);
	if (at >= 0)
		kept[at].waited++;
}

/* Counts the connections that have waited for too long. Returns false with errno. */
static bool count_all(int netlink, int family)
{
	errno = connections_each(netlink, family, ESTABLISHED | CLOSE_WAIT, 1 << (INET_DIAG_INFO - 1), count, NULL);
	return errno == 0;
}

static bool has_queue(int fd)
{
	struct pollfd queue = { .fd = fd, .events = POLLIN };

	return poll(&queue, 1, 0) == 1;
}

static bool has_queues(void)
{
	for (int i = 0; i < kept_count; i++)
		if (has_queue(kept[i].fd))
			return true;
	return false;
}

/* The application is stopped, so no one else accepts meanwhile. */
bool close_forgotten(void)
{
	bool counted;
	int netlink;

	if (!has_queues())
		return true;
	netlink = netlink_open(NETLINK_SOCK_DIAG);
	counted = netlink >= 0 && count_all(netlink, AF_INET) && count_all(netlink, AF_INET6);
	if (netlink >= 0)
		close(netlink);
	for (int i = 0; i < kept_count; i++)
		for (; kept[i].waited > 0 && has_queue(kept[i].fd); kept[i].waited--) {
			int connection = accept(kept[i].fd, NULL, NULL);

			if (connection >= 0)
				close(connection);
		}
	return counted;
}

/* Returns the address at which this host reaches the socket. */
static struct sockaddr_in6 reachable(int socket, struct sockaddr_in6 address)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;
	int only_ipv6 = 0;
	socklen_t length = sizeof only_ipv6;

	if (address.sin6_family == AF_INET) {
		if (ipv4->sin_addr.s_addr == htonl(INADDR_ANY))
			ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else if (IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr)) {
		getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, &length);
		/* A host may have switched IPv6 off. */
		inet_pton(AF_INET6, only_ipv6 ? "::1" : "::ffff:127.0.0.1", &address.sin6_addr);
	}
	return address;
}

/*
 * Closes a socket, so that its queue moves. Kernels before April 2026 do not wake a process that waits for connections at
 * the new one when that happens. So a connection of our own does, which ends at once.
 */
static void let_one_go(int at)
{
	struct sockaddr_in6 address = reachable(kept[at].fd, kept[at].address);
	bool has_clients = has_queue(kept[at].fd);
	struct pollfd connected = { .events = POLLOUT };

	close(kept[at].fd);
	if (!has_clients)
		return;
	connected.fd = socket(address.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connected.fd < 0)
		return;
	connect(connected.fd, (struct sockaddr *)&address,
		address.sin6_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof address);
	poll(&connected, 1, WAKE_MS);
	close(connected.fd);
}

void let_go(void)
{
	for (int i = 0; i < kept_count; i++)
		let_one_go(i);
}
