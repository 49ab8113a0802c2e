#include "grave.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "netlink.h"

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

/* Returns 0 or an errno. */
static int write_setting(const char *path, const char *value)
{
	int error, fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	error = write(fd, value, strlen(value)) < 0 ? errno : 0;
	close(fd);
	return error;
}

/*
 * A packet to the heir leaves by the interface it came in by, so the kernel would send the client an ICMP redirect.
 * Each interface has its own setting, and `all` applies in addition.
 */
static int no_redirects(void)
{
	static const char parent[] = "/proc/sys/net/ipv4/conf";
	DIR *directory = opendir(parent);
	struct dirent *entry;
	int error = 0;

	if (!directory)
		return errno;
	while (!error && (entry = readdir(directory))) {
		char path[320];

		snprintf(path, sizeof path, "%s/%s/send_redirects", parent, entry->d_name);
		if (entry->d_name[0] != '.')
			error = write_setting(path, "0");
		/* An interface may disappear at any time. */
		if (error == ENOENT)
			error = 0;
	}
	closedir(directory);
	return error;
}

/* Call it inside the namespace. Returns the socket, or -1 with errno. */
static int furnish(struct addresses *addresses, uint32_t heir)
{
	uint8_t bytes[RULES_BYTES];
	struct batch batch;
	int error, netlink = netlink_open(NETLINK_NETFILTER);

	if (netlink < 0)
		return -1;
	addresses_read(addresses);
	rules_prepare(&batch, bytes, sizeof bytes, heir);
	error = no_redirects();
	if (!error)
		error = batch_commit(netlink, &batch);
	/* Last: the pod must not forward before the rules exist. */
	if (!error)
		error = write_setting("/proc/sys/net/ipv4/ip_forward", "1");
	if (!error)
		return netlink;
	close(netlink);
	errno = error;
	return -1;
}

static int furnish_namespace(int namespace, int home, struct addresses *addresses, uint32_t heir)
{
	int netlink, error;

	if (setns(namespace, CLONE_NEWNET) != 0)
		return -1;
	netlink = furnish(addresses, heir);
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
	return netlink;
}

struct grave *grave_dig(struct process process, uint32_t heir, bool (*closed)(void *context, const struct network *),
			void *context)
{
	struct network network, own, nodes;
	int namespace = -1, home = -1, first = -1, pidfd = process_open(process), error;
	struct grave *grave = NULL;

	if (pidfd < 0)
		return NULL;
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
	if (network_same(&network, &own) || network_same(&network, &nodes))
		goto out;
	grave = calloc(1, sizeof *grave);
	if (!grave)
		goto out;
	rules_close(&grave->close, grave->close_bytes, sizeof grave->close_bytes, heir);
	rules_open(&grave->open, grave->open_bytes, sizeof grave->open_bytes);
	grave->network = network;
	grave->heir = heir;
	grave->state = closed(context, &network) ? GRAVE_CLOSED : GRAVE_READY;
	grave->netlink = furnish_namespace(namespace, home, &grave->addresses, grave->state == GRAVE_CLOSED ? heir : 0);
	if (grave->netlink < 0) {
		error = errno;
		free(grave);
		grave = NULL;
		errno = error;
	}
out:
	error = errno;
	close(pidfd);
	close(namespace);
	close(home);
	close(first);
	errno = error;
	return grave;
}

int grave_aim(struct grave *grave, uint32_t heir)
{
	int error;

	rules_close(&grave->close, grave->close_bytes, sizeof grave->close_bytes, heir);
	error = grave->state == GRAVE_CLOSED ? batch_commit(grave->netlink, &grave->close) : 0;
	if (error)
		rules_close(&grave->close, grave->close_bytes, sizeof grave->close_bytes, grave->heir);
	else
		grave->heir = heir;
	return error;
}

int grave_close(struct grave *grave)
{
	int error = grave->state == GRAVE_CLOSED ? 0 : batch_commit(grave->netlink, &grave->close);

	grave->state = error ? GRAVE_FAILED : GRAVE_CLOSED;
	return error;
}

void grave_sweep(const struct grave *grave)
{
	int count = grave->state == GRAVE_CLOSED ? conntrack_forget(grave->netlink, &grave->addresses) : 0;

	if (count < 0)
		log_failure("conversations from before a death may go on", errno);
}

int grave_open(struct grave *grave)
{
	int error = grave->state == GRAVE_CLOSED ? batch_commit(grave->netlink, &grave->open) : 0;

	if (!error)
		grave->state = GRAVE_READY;
	return error;
}

void grave_free(struct grave *grave)
{
	if (!grave)
		return;
	close(grave->netlink);
	free(grave);
}

const char *grave_state_name(const struct grave *grave)
{
	static const char *const names[] = { "ready", "closed", "failed" };

	return grave ? names[grave->state] : "none";
}
