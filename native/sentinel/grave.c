#include "grave.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "netlink.h"

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

struct furnishing {
	struct grave *grave;
	bool (*closed)(void *context, const struct network *network);
	void *context;
};

static int furnish_for(void *context, const struct network *network)
{
	struct furnishing *furnishing = context;
	struct grave *grave = furnishing->grave;

	grave->network = *network;
	grave->state = furnishing->closed(furnishing->context, network) ? GRAVE_CLOSED : GRAVE_READY;
	return furnish(&grave->addresses, grave->state == GRAVE_CLOSED ? grave->heir : 0);
}

struct grave *grave_dig(struct process process, uint32_t heir, bool (*closed)(void *context, const struct network *),
			void *context)
{
	struct grave *grave = calloc(1, sizeof *grave);
	struct furnishing furnishing = { .grave = grave, .closed = closed, .context = context };
	int error;

	if (!grave)
		return NULL;
	rules_close(&grave->close, grave->close_bytes, sizeof grave->close_bytes, heir);
	rules_open(&grave->open, grave->open_bytes, sizeof grave->open_bytes);
	grave->heir = heir;
	grave->netlink = network_enter(process, furnish_for, &furnishing);
	if (grave->netlink >= 0)
		return grave;
	error = errno;
	free(grave);
	errno = error;
	return NULL;
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
