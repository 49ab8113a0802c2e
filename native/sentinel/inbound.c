#include "inbound.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connections.h"
#include "process_stat.h"

/*
 * A tenant chooses how many there are: listening sockets of a pod, threads and descriptors of a process, connections of a round, and
 * rounds. Those that are left end with the process.
 */
enum { LISTENERS = 256, THREADS = 256, DESCRIPTORS = 65536, AT_ONCE = 4096, ROUNDS = 16 };

struct listener {
	uint32_t inode;
	uint16_t port; /* in the byte order of networks */
	bool dies; /* the process has it */
};

struct inbound {
	const struct addresses *addresses;
	const atomic_bool *spared;
	struct listener listeners[LISTENERS];
	int listener_count;
	struct inet_diag_sockid *list;
	size_t count;
	struct haste *haste;
};

static void note_listener(void *context, const struct inet_diag_msg *one, struct span more)
{
	struct inbound *inbound = context;

	(void)more;
	haste_check(inbound->haste);
	if (inbound->listener_count < LISTENERS)
		inbound->listeners[inbound->listener_count++] =
			(struct listener){ .inode = one->idiag_inode, .port = one->id.idiag_sport };
}

/* Looks which of the listening sockets are in this directory of descriptors. False if it has none. */
static bool look_in(struct inbound *inbound, const char *path)
{
	DIR *descriptors = opendir(path);
	struct dirent *entry;
	int seen = 0;

	while (descriptors && seen < DESCRIPTORS && (entry = readdir(descriptors))) {
		char target[64];
		ssize_t n = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
		unsigned inode;

		haste_check(inbound->haste);
		if (n < 0)
			continue;
		seen++;
		target[n] = '\0';
		if (sscanf(target, "socket:[%u]", &inode) != 1)
			continue;
		for (int i = 0; i < inbound->listener_count; i++)
			if (inbound->listeners[i].inode == inode)
				inbound->listeners[i].dies = true;
	}
	if (descriptors)
		closedir(descriptors);
	return seen > 0;
}

/* Each thread gives up the descriptors as it ends. The last thread frees the memory before. */
static void look_at(struct inbound *inbound, pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	threads = opendir(path);
	for (int seen = 0; threads && !found && seen < THREADS && (entry = readdir(threads)); seen++) {
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/fd", (int)pid, entry->d_name);
		haste_check(inbound->haste);
		found = entry->d_name[0] != '.' && look_in(inbound, path);
	}
	if (threads)
		closedir(threads);
}

/* Returns 0 or an errno. ESRCH: the process is gone, and another one may have its number. */
static int find_listeners(struct inbound *inbound, int netlink, struct process process)
{
	struct process_stat stat;
	int error = connections_each(netlink, AF_INET, LISTENING, 0, note_listener, inbound);

	if (!error)
		error = connections_each(netlink, AF_INET6, LISTENING, 0, note_listener, inbound);
	if (error)
		return error;
	look_at(inbound, process.pid);
	return process_stat(process.pid, &stat) && stat.start == process.start ? 0 : ESRCH;
}

static bool is_listener(const struct inbound *inbound, uint16_t port)
{
	for (int i = 0; i < inbound->listener_count; i++)
		if (inbound->listeners[i].dies && inbound->listeners[i].port == port)
			return true;
	return false;
}

/* A socket of IPv6 has an address of IPv4 in its last four bytes. */
static bool among(const struct addresses *addresses, int family, const uint32_t address[4])
{
	struct in6_addr whole;

	memcpy(&whole, address, sizeof whole);
	if (family == AF_INET)
		return addresses_have(addresses, whole.s6_addr, 4);
	if (IN6_IS_ADDR_V4MAPPED(&whole))
		return addresses_have(addresses, whole.s6_addr + 12, 4);
	return addresses_have(addresses, whole.s6_addr, 16);
}

static void note(void *context, const struct inet_diag_msg *one, struct span more)
{
	struct inbound *inbound = context;

	(void)more;
	haste_check(inbound->haste);
	/* The kernel still sends an answer that the app has given, as after an exit. A reset would discard it. */
	if (inbound->count < AT_ONCE && one->idiag_wqueue == 0 && is_listener(inbound, one->id.idiag_sport) &&
	    among(inbound->addresses, one->idiag_family, one->id.idiag_src) &&
	    !among(inbound->addresses, one->idiag_family, one->id.idiag_dst))
		inbound->list[inbound->count++] = one->id;
}

/* Returns 0 or an errno; EAGAIN: there may be more. */
static int end_some(struct inbound *inbound, int netlink, int family)
{
	int error;

	inbound->count = 0;
	error = connections_each(netlink, family, UNFINISHED, 0, note, inbound);
	/* After the list: a connection that must stay and is on it has begun after this was set. */
	if (atomic_load(inbound->spared))
		return error;
	for (size_t i = 0; !error && i < inbound->count; i++) {
		haste_check(inbound->haste);
		error = connections_end(netlink, family, &inbound->list[i]);
		/* It has ended by itself. */
		if (error == ENOENT || error == ESTALE)
			error = 0;
	}
	return !error && inbound->count == AT_ONCE ? EAGAIN : error;
}

static int end_all(struct inbound *inbound, int netlink, int family)
{
	int error = EAGAIN;

	for (int round = 0; round < ROUNDS && error == EAGAIN; round++)
		error = end_some(inbound, netlink, family);
	return error == EAGAIN ? 0 : error;
}

int inbound_end(int netlink, const struct addresses *addresses, struct process process, struct haste *haste, const atomic_bool *spared)
{
	struct inbound *inbound;
	int error = ENOMEM;

	if (atomic_load(spared))
		return 0;
	inbound = calloc(1, sizeof *inbound);
	if (inbound)
		inbound->list = calloc(AT_ONCE, sizeof *inbound->list);
	if (inbound && inbound->list) {
		inbound->addresses = addresses;
		inbound->spared = spared;
		inbound->haste = haste;
		error = find_listeners(inbound, netlink, process);
		if (!error)
			error = end_all(inbound, netlink, AF_INET);
		if (!error)
			error = end_all(inbound, netlink, AF_INET6);
	}
	if (inbound)
		free(inbound->list);
	free(inbound);
	/* The connections of a process have ended with it. */
	return error == ESRCH ? 0 : error;
}
