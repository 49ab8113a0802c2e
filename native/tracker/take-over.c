/*
 * The tenant decides what is behind a number: a process that shares its descriptors, and is not held, may put another
 * file there at any time. Even to close that can take as long as the tenant says, such as for a socket that
 * lingers, or a file of a file system in user space. So a child looks at the descriptor, and passes on only a userfaultfd.
 * A child that ends closes a socket without lingering, and the tracker does not wait for one that cannot end.
 */
#include "tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { TAKE_MS = 200 };

union rights {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static bool is_userfaultfd(int fd)
{
	char path[32], target[64];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof target - 1);
	target[length < 0 ? 0 : length] = 0;
	return strcmp(target, "anon_inode:[userfaultfd]") == 0;
}

static void __attribute__((noreturn)) look(int pidfd, int number, int to)
{
	char byte = 0;
	union rights rights = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights };
	int fd;

	/* If it cannot end, it must not keep the userfaultfds of other processes. */
	if (dup2(pidfd, 0) != 0 || dup2(to, 1) != 1 || syscall(SYS_close_range, 2, ~0U, 0) != 0)
		_exit(1);
	fd = (int)syscall(SYS_pidfd_getfd, 0, number, 0);
	if (fd < 0 || !is_userfaultfd(fd))
		_exit(1);
	memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
	_exit(sendmsg(1, &message, MSG_NOSIGNAL) == 1 ? 0 : 1);
}

static const char *receive(int from, int *uffd)
{
	char byte;
	union rights rights;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights };
	struct pollfd wait = { .fd = from, .events = POLLIN };
	const struct cmsghdr *header;

	if (poll(&wait, 1, TAKE_MS) <= 0)
		return "busy";
	if (recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return "forged";
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_len != CMSG_LEN(sizeof *uffd))
		return "memory";
	memcpy(uffd, CMSG_DATA(header), sizeof *uffd);
	return NULL;
}

const char *take_over(int pidfd, int number, int *uffd)
{
	int ends[2];
	const char *why;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return "memory";
	child = fork();
	if (child == 0)
		look(pidfd, number, ends[1]);
	close(ends[1]);
	why = child < 0 ? "memory" : receive(ends[0], uffd);
	close(ends[0]);
	return why;
}
