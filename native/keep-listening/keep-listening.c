/*
 * Keeps the listening TCP sockets of processes open while these end and others take their place, so that clients wait
 * in the sockets' queues and meet no closed port.
 *
 *   keep-listening PID...
 *
 * Prints one line, `kept COUNT`, once the sockets survive their processes, and ends when its standard input ends. The
 * connections in a queue then move to the socket that listens at the same address by that time (tcp_migrate_req, Linux
 * 5.14), if that has been bound with SO_REUSEPORT by the same user, as CRIU binds it. Skips processes that are gone.
 * Closes connections that have waited for longer than PATIENCE_MS and have sent nothing since: an application that is
 * stopped accepts none, and a scraper would add one every few seconds, until the queue is full.
 * Exit codes: 0; 2 usage; 1 a failure, with a line on standard error; 3 not supported by this kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netlink.h"

/* A tenant chooses how many its application has. The program keeps no more than these. */
enum { MOST_SOCKETS = 256, MOST_DESCRIPTORS = 65536 };
enum { CANNOT = 3, PATIENCE_MS = 1000, ROOM = 32768 };
/* A client that waits, and one that has stopped sending. */
enum { STATES = 1 << 1 | 1 << 8 };

static const char migrate[] = "/proc/sys/net/ipv4/tcp_migrate_req";

static struct {
	ino_t number;
	int fd, waited; /* connections that have waited for too long */
	in_port_t port;
} kept[MOST_SOCKETS];
static int kept_count, looked_at;

static int failed(const char *what)
{
	fprintf(stderr, "keep-listening: %s: %s\n", what, strerror(errno));
	return 1;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static bool has(int fd, int option, int value)
{
	int is;
	socklen_t length = sizeof is;

	return getsockopt(fd, SOL_SOCKET, option, &is, &length) == 0 && is == value;
}

/* Notes a listening socket, unless another descriptor of it has been noted. */
static bool note(int fd)
{
	struct sockaddr_in6 address; /* sockaddr_in has family and port at the same places */
	socklen_t length = sizeof address;
	struct stat status;

	if (fstat(fd, &status) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return false;
	for (int i = 0; i < kept_count; i++)
		if (kept[i].number == status.st_ino)
			return false;
	kept[kept_count].number = status.st_ino;
	kept[kept_count].fd = fd;
	kept[kept_count++].port = address.sin6_port;
	return true;
}

/* Takes a copy of a descriptor, which stays open if it is a listening TCP socket. */
static void keep(int process, const char *number)
{
	const int yes = 1;
	int fd = (int)syscall(SYS_pidfd_getfd, process, atoi(number), 0);

	if (fd < 0)
		return;
	if (!has(fd, SO_PROTOCOL, IPPROTO_TCP) || !has(fd, SO_ACCEPTCONN, 1) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 || !note(fd))
		close(fd);
}

static bool is_socket(const char *pid, const char *fd)
{
	char path[64], name[8];

	snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, fd);
	return readlink(path, name, sizeof name) == sizeof name && memcmp(name, "socket:[", sizeof name) == 0;
}

/* False, with errno, if this fails for another reason than the end of the process. */
static bool keep_all(const char *pid)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;
	int process = (int)syscall(SYS_pidfd_open, atoi(pid), 0);

	if (process < 0)
		return errno == ESRCH;
	snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
	directory = opendir(path);
	while (directory && kept_count < MOST_SOCKETS && looked_at < MOST_DESCRIPTORS && (entry = readdir(directory))) {
		looked_at++;
		if (is_number(entry->d_name) && is_socket(pid, entry->d_name))
			keep(process, entry->d_name);
	}
	if (directory)
		closedir(directory);
	close(process);
	return true;
}

/* Enters the network namespace of that process, but never the node's own. Returns false with errno. */
static bool enter(const char *pid)
{
	char path[64];
	struct stat there, here;
	bool entered;
	int space;

	snprintf(path, sizeof path, "/proc/%.20s/ns/net", pid);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0)
		return false;
	errno = EPERM;
	entered = fstat(space, &there) == 0 && stat("/proc/self/ns/net", &here) == 0 && there.st_ino != here.st_ino &&
		  setns(space, CLONE_NEWNET) == 0;
	close(space);
	return entered;
}

/* Has queues of this network move from now on. Returns an exit code. */
static int let_queues_move(void)
{
	int file = open(migrate, O_WRONLY | O_CLOEXEC);
	bool written = file >= 0 && write(file, "1", 1) == 1;

	if (!written)
		return errno == ENOENT ? CANNOT : failed(migrate);
	close(file);
	return 0;
}

/* Returns for how long the peer of a connection has sent nothing, ms; 0: the kernel does not say. */
static unsigned silent_ms(struct span body)
{
	size_t at = NLMSG_ALIGN(sizeof(struct inet_diag_msg));
	struct tcp_info info = { 0 };
	struct nlattr attribute;

	for (; at + sizeof attribute <= body.length; at += NLA_ALIGN(attribute.nla_len)) {
		memcpy(&attribute, body.at + at, sizeof attribute);
		if (attribute.nla_len < sizeof attribute || attribute.nla_len > body.length - at)
			return 0;
		if (attribute.nla_type != INET_DIAG_INFO)
			continue;
		size_t length = attribute.nla_len - sizeof attribute;

		memcpy(&info, body.at + at + sizeof attribute, length < sizeof info ? length : sizeof info);
		return info.tcpi_last_data_recv;
	}
	return 0;
}

static void count(struct span body)
{
	struct inet_diag_msg one;

	if (body.length < sizeof one)
		return;
	memcpy(&one, body.at, sizeof one);
	/* A connection that no process has accepted has no file. */
	if (one.idiag_inode != 0 || silent_ms(body) <= PATIENCE_MS)
		return;
	for (int i = 0; i < kept_count; i++)
		if (kept[i].port == one.id.idiag_sport) {
			kept[i].waited++;
			return;
		}
}

/* Counts the connections that have waited for too long. Returns false with errno. */
static bool count_all(int netlink, int family)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} question = {
		.header = { .nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = (unsigned char)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = STATES,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1) },
	};
	static uint8_t answer[ROOM];

	if (netlink_send(netlink, &question, sizeof question) != 0)
		return false;
	for (;;) {
		ssize_t length = recv(netlink, answer, sizeof answer, 0);
		struct span received = { answer, (size_t)length }, body;
		struct nlmsghdr header;

		if (length <= 0)
			return false;
		while (netlink_next(&received, &header, &body) == NETLINK_MESSAGE) {
			if (header.nlmsg_type == NLMSG_DONE)
				return true;
			if (header.nlmsg_type == NLMSG_ERROR) {
				errno = netlink_verdict(body);
				/* A kernel without IPv6 has no IPv6 connections. */
				return errno == ENOENT && family == AF_INET6;
			}
			count(body);
		}
	}
}

/*
 * Closes the oldest connections of each queue, as many as have waited for too long. The application is stopped, so no
 * one else accepts meanwhile.
 */
static bool close_forgotten(void)
{
	int netlink = netlink_open(NETLINK_SOCK_DIAG);
	bool counted = netlink >= 0 && count_all(netlink, AF_INET) && count_all(netlink, AF_INET6);

	if (netlink >= 0)
		close(netlink);
	for (int i = 0; i < kept_count; i++)
		for (; kept[i].waited > 0; kept[i].waited--) {
			struct pollfd queue = { .fd = kept[i].fd, .events = POLLIN };
			int connection = poll(&queue, 1, 0) == 1 ? accept(kept[i].fd, NULL, NULL) : -1;

			if (connection < 0)
				break;
			close(connection);
		}
	return counted;
}

int main(int argc, char **argv)
{
	char byte;
	int code;

	for (int i = 1; i < argc; i++)
		if (!is_number(argv[i]))
			argc = 0;
	if (argc < 2) {
		fputs("usage: keep-listening PID...\n", stderr);
		return 2;
	}
	if (enter(argv[1])) {
		code = let_queues_move();
		if (code != 0)
			return code;
	} else if (errno != ENOENT && errno != ESRCH) {
		return failed("network of the process");
	}
	for (int i = 1; i < argc; i++)
		if (!keep_all(argv[i]))
			return failed(argv[i]);
	if (kept_count > 0 && !close_forgotten())
		return failed("connections");
	printf("kept %d\n", kept_count);
	if (fflush(stdout) != 0)
		return failed("output");
	while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
		;
	return 0;
}
