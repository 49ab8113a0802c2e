/*
 * Ends the TCP connections of a pod with one address, so that both sides notice. Connections that end by themselves
 * within MOMENT_US are left alone: most requests do.
 *
 *   sever PID ADDRESS
 *
 * PID is a process of the pod; ADDRESS is an address of IPv4 or IPv6. Prints one line, `ended COUNT`. Exit codes: 0; 2 usage; 1 a
 * failure, with a line on standard error; 3 not supported by this kernel (CONFIG_INET_DIAG_DESTROY).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connections.h"
#include "fail.h"
#include "netlink.h"

enum { MOST = 65536, CANNOT = 3, MOMENT_US = 100000 };

static struct inet_diag_sockid found[MOST];
static int count;

/* An IPv6 socket has an IPv4 peer as an address of this form. */
static bool read_address(const char *text, struct in6_addr *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(address->s6_addr, mapped, sizeof mapped);
	return inet_pton(AF_INET, text, &address->s6_addr[sizeof mapped]) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool is_peer(const struct inet_diag_msg *one, const struct in6_addr *address)
{
	if (one->idiag_family == AF_INET)
		return IN6_IS_ADDR_V4MAPPED(address) && memcmp(one->id.idiag_dst, &address->s6_addr[12], 4) == 0;
	return memcmp(one->id.idiag_dst, address, sizeof *address) == 0;
}

/* Records a connection with that address. */
static void note(void *address, const struct inet_diag_msg *one, struct span more)
{
	(void)more;
	if (is_peer(one, address) && count < MOST)
		found[count++] = one->id;
}

/* Returns 1: ended; 0: it had ended by itself; -1 with errno. */
static int end(int netlink, int family, const struct inet_diag_sockid *id)
{
	errno = connections_end(netlink, family, id);
	/* ESTALE: another connection uses its ports by now. */
	return errno == 0 ? 1 : errno == ENOENT || errno == ESTALE ? 0 : -1;
}

/* Enters the network namespace of that process, but never the node's own. */
static int enter(const char *pid)
{
	char path[32];
	struct stat there, here;
	int space;

	snprintf(path, sizeof path, "/proc/%.10s/ns/net", pid);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || fstat(space, &there) != 0 || stat("/proc/self/ns/net", &here) != 0)
		return -1;
	errno = EPERM;
	return there.st_ino == here.st_ino && there.st_dev == here.st_dev ? -1 : setns(space, CLONE_NEWNET);
}

int main(int argc, char **argv)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct in6_addr address;
	int netlink, ended = 0;

	if (argc != 3 || strspn(argv[1], "0123456789") != strlen(argv[1]) || !read_address(argv[2], &address)) {
		fputs("usage: sever PID ADDRESS\n", stderr);
		return 2;
	}
	if (enter(argv[1]) != 0) {
		if (errno != ENOENT && errno != ESRCH)
			return failed("network of the process");
		/* The process is gone, and its connections with it. */
		puts("ended 0");
		return fflush(stdout) == 0 ? 0 : failed("output");
	}
	netlink = netlink_open(NETLINK_SOCK_DIAG);
	if (netlink < 0)
		return failed("socket");
	for (int i = 0; i < 2; i++) {
		count = 0;
		errno = connections_each(netlink, families[i], UNFINISHED, 0, note, &address);
		if (errno)
			return failed("connections");
		if (count > 0)
			usleep(MOMENT_US);
		for (int each = 0; each < count; each++) {
			int done = end(netlink, families[i], &found[each]);

			if (done < 0)
				return errno == EOPNOTSUPP ? CANNOT : failed("end");
			ended += done;
		}
	}
	printf("ended %d\n", ended);
	return fflush(stdout) == 0 ? 0 : failed("output");
}
