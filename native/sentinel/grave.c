#include "grave.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "forwarding.h"
#include "log.h"
#include "netlink.h"
#include "sweeper.h"

struct survey {
	struct grave *grave;
	bool (*closed)(void *context, const struct network *network);
	void *context;
};

/* Returns a socket in the namespace, or -1 with errno. */
static int look_around(void *context, const struct network *network)
{
	struct survey *survey = context;
	struct grave *grave = survey->grave;
	int error, netlink = netlink_open(NETLINK_NETFILTER);

	if (netlink < 0)
		return -1;
	/* Answers of the connection tracking must not mix with those to a batch. */
	grave->tracking = netlink_open(NETLINK_NETFILTER);
	if (grave->tracking < 0) {
		error = errno;
		close(netlink);
		errno = error;
		return -1;
	}
	/* A kernel without it resets connections later, as the app dies. */
	grave->connections = netlink_open(NETLINK_SOCK_DIAG);
	grave->network = *network;
	grave->state = survey->closed(survey->context, network) ? GRAVE_CLOSED : GRAVE_READY;
	addresses_read(&grave->addresses);
	error = forwarding_send_no_redirects();
	if (!error)
		return netlink;
	close(netlink);
	errno = error;
	return -1;
}

/* The descriptor stays with this network. */
static int forward(void *context, const struct network *network)
{
	struct grave *grave = context;

	(void)network;
	grave->resets = open("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close", O_WRONLY | O_CLOEXEC);
	errno = forwarding_begin(grave->both);
	return errno ? -1 : 0;
}

/*
 * The kernel keeps a connection that the dead app has reset for ten seconds, and lets a client that connects again from the same
 * port pass by the redirect. So connections that are reset later are forgotten at once, and grave_sweep() removes earlier ones. In
 * the network of another user namespace the setting is missing or read-only: there the sweep has to do.
 */
static void keep_resets(const struct grave *grave, bool kept)
{
	static const char usual[] = "10", none[] = "0";

	/* The pod may be gone. */
	if (grave->resets >= 0 && pwrite(grave->resets, kept ? usual : none, kept ? 2 : 1, 0) < 0 && errno != ENOENT)
		log_failure("connections that a dead app has reset may go on", errno);
}

/* Returns 0 or an errno. */
static int replace_tables(struct grave *grave)
{
	const struct address *heir = grave->state == GRAVE_CLOSED ? &grave->heir : NULL;
	uint8_t bytes[RULES_BYTES];
	struct batch batch;

	rules_prepare(&batch, bytes, sizeof bytes, grave->both, heir);
	return committer_commit(grave->committer, &batch, PATIENT_NS);
}

/*
 * True once this kernel has shown that it lacks parts that only IPv6 needs. A pod of IPv4 needs none of them. All graves of a pod have
 * the same tables, so they must agree on this.
 */
static bool lacks_parts;

/* The kernel's words for a table, a type of chain or an expression that it does not have. */
static bool is_lack(int error)
{
	return error == ENOENT || error == EOPNOTSUPP || error == EAFNOSUPPORT;
}

/* False with errno. */
static bool furnish(struct grave *grave, struct process process, int netlink)
{
	int error;

	grave->committer = committer_open(netlink);
	if (!grave->committer)
		return false;
	grave->both = !lacks_parts;
	if (!grave->both && grave->heir.family != AF_INET) {
		errno = EAFNOSUPPORT;
		return false;
	}
	error = replace_tables(grave);
	if (is_lack(error) && grave->both && grave->heir.family == AF_INET) {
		log_failure("clients of a dead pod that use IPv6 may reach the app that is started there", error);
		grave->both = false;
		error = replace_tables(grave);
		lacks_parts = !error;
	}
	/* Last: the pod must not forward before the rules exist, and with them connection tracking does. */
	if (!error && network_enter(process, forward, grave) == 0) {
		/* A grave that was forgotten while it was closed is open now. */
		if (grave->state == GRAVE_READY)
			sweeper_spare(&grave->network);
		if (grave->state == GRAVE_CLOSED)
			keep_resets(grave, false);
		return true;
	}
	if (error)
		errno = error;
	return false;
}

/* Builds the message that puts the redirect into effect. */
static void prepare_close(struct grave *grave, const struct address *heir)
{
	rules_close(&grave->close, grave->close_bytes, sizeof grave->close_bytes, grave->both, heir);
}

struct grave *grave_dig(struct process process, const struct address *heir, bool (*closed)(void *context, const struct network *),
			void *context)
{
	struct grave *grave = calloc(1, sizeof *grave);
	struct survey survey = { .grave = grave, .closed = closed, .context = context };
	int netlink, error;

	if (!grave)
		return NULL;
	grave->resets = grave->tracking = grave->connections = -1;
	grave->heir = *heir;
	netlink = network_enter(process, look_around, &survey);
	if (netlink >= 0 && furnish(grave, process, netlink)) {
		prepare_close(grave, heir);
		rules_open(&grave->open, grave->open_bytes, sizeof grave->open_bytes, grave->both);
		return grave;
	}
	error = errno;
	grave_free(grave);
	errno = error;
	return NULL;
}

/* Returns 0 or an errno. The state follows only if the kernel has done it, and becomes FAILED while that is not known. */
static int change(struct grave *grave, const struct batch *batch, enum grave_state state)
{
	int error = committer_commit(grave->committer, batch, PATIENT_NS);

	if (!error)
		grave->state = state;
	if (error == EINPROGRESS) {
		grave->state = GRAVE_FAILED;
		grave->later = state;
		grave->late = true;
	}
	return error;
}

bool grave_settle(struct grave *grave)
{
	int result;

	if (!grave->late)
		return true;
	result = committer_result(grave->committer);
	if (result == EBUSY)
		return false;
	grave->late = false;
	if (!result)
		grave->state = grave->later;
	/* A death that came meanwhile could not close it. */
	if (grave->wanted && grave->state != GRAVE_CLOSED)
		grave_close(grave);
	if (grave->late)
		return false;
	if (grave->wanted)
		grave_sweep(grave);
	return true;
}

int grave_aim(struct grave *grave, const struct address *heir)
{
	int error;

	if (!grave_settle(grave))
		return EBUSY;
	if (!grave->both && heir->family != AF_INET)
		return EAFNOSUPPORT;
	prepare_close(grave, heir);
	error = grave->state == GRAVE_CLOSED ? change(grave, &grave->close, GRAVE_CLOSED) : 0;
	if (error && error != EINPROGRESS)
		prepare_close(grave, &grave->heir);
	else
		grave->heir = *heir;
	return error;
}

int grave_close(struct grave *grave)
{
	int error;

	grave->wanted = true;
	if (!grave_settle(grave))
		return grave->later == GRAVE_CLOSED ? EINPROGRESS : EBUSY;
	error = grave->state == GRAVE_CLOSED ? 0 : change(grave, &grave->close, GRAVE_CLOSED);
	keep_resets(grave, false);
	if (error)
		grave->state = GRAVE_FAILED;
	return error;
}

void grave_sweep(const struct grave *grave)
{
	if (grave->state == GRAVE_CLOSED)
		sweeper_forget(grave->tracking, &grave->addresses);
}

void grave_end_connections(const struct grave *grave, struct process process)
{
	if (grave->state == GRAVE_CLOSED && grave->connections >= 0)
		sweeper_end(grave->connections, &grave->network, &grave->addresses, process);
}

int grave_open(struct grave *grave)
{
	if (!grave_settle(grave))
		return EBUSY;
	grave->wanted = false;
	/* The thread that ends connections may still have to begin. If the redirect stays, clients only wait for longer. */
	sweeper_spare(&grave->network);
	keep_resets(grave, true);
	return grave->state == GRAVE_CLOSED ? change(grave, &grave->open, GRAVE_READY) : 0;
}

void grave_free(struct grave *grave)
{
	if (!grave)
		return;
	if (grave->resets >= 0)
		close(grave->resets);
	if (grave->tracking >= 0)
		close(grave->tracking);
	if (grave->connections >= 0)
		close(grave->connections);
	committer_free(grave->committer);
	free(grave);
}

const char *grave_state_name(const struct grave *grave)
{
	static const char *const names[] = { "ready", "closed", "failed" };

	return grave ? names[grave->state] : "none";
}
