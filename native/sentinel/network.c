#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

static int open_namespace(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct network network_of(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return (struct network){ 0 };
	return (struct network){ .device = st.st_dev, .inode = st.st_ino };
}

bool network_same(const struct network *a, const struct network *b)
{
	return a->inode && a->device == b->device && a->inode == b->inode;
}

static int work_in(int namespace, int home, int (*inside)(void *context, const struct network *network), void *context)
{
	struct network network = network_of(namespace);
	int result, error;

	if (setns(namespace, CLONE_NEWNET) != 0)
		return -1;
	result = inside(context, &network);
	error = errno;
	if (setns(home, CLONE_NEWNET) != 0) {
		/*
		 * The thread has just left this namespace, so returning to it should work. If not, everything it does
		 * from here on would happen in the wrong namespace.
		 */
		log_failure("cannot return to the node's network namespace", errno);
		abort();
	}
	errno = error;
	return result;
}

int network_enter(struct process process, int (*inside)(void *context, const struct network *network), void *context)
{
	int namespace = -1, home = -1, first = -1, pidfd = process_open(process), result = -1, error;
	struct network network, own, nodes;

	if (pidfd < 0)
		return -1;
	namespace = open_namespace(process.pid);
	home = open_namespace(getpid());
	first = open_namespace(1);
	close(pidfd);
	/* Check the process again: the /proc directory may already have belonged to another process with its pid. */
	pidfd = process_open(process);
	if (pidfd < 0 || namespace < 0 || home < 0)
		goto out;
	network = network_of(namespace);
	own = network_of(home);
	/* Reading the namespace of process 1 may be forbidden; then our own has to do. */
	nodes = network_of(first);
	errno = EPERM;
	if (!network_same(&network, &own) && !network_same(&network, &nodes))
		result = work_in(namespace, home, inside, context);
out:
	error = errno;
	close(pidfd);
	close(namespace);
	close(home);
	close(first);
	errno = error;
	return result;
}
