#include "nfnetlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink.h"

static void append(struct batch *batch, const void *bytes, size_t length)
{
	size_t padded = (length + 3) & ~(size_t)3;

	if (batch->overflow || batch->length + padded > batch->room) {
		batch->overflow = true;
		return;
	}
	memset(batch->bytes + batch->length, 0, padded);
	if (length)
		memcpy(batch->bytes + batch->length, bytes, length);
	batch->length += padded;
}

static void close_message(struct batch *batch)
{
	uint32_t length = (uint32_t)(batch->length - batch->message);

	if (!batch->overflow && length)
		memcpy(batch->bytes + batch->message, &length, sizeof length);
}

static void open_message(struct batch *batch, uint16_t type, uint16_t flags, uint8_t family, uint16_t resource)
{
	struct nlmsghdr header = {
		.nlmsg_type = type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = ++batch->sequence,
	};
	struct nfgenmsg more = { .nfgen_family = family, .res_id = htons(resource) };

	close_message(batch);
	batch->message = batch->length;
	append(batch, &header, sizeof header);
	append(batch, &more, sizeof more);
}

void batch_begin(struct batch *batch, void *bytes, size_t room)
{
	*batch = (struct batch){ .bytes = bytes, .room = room, .family = NFPROTO_IPV4 };
	open_message(batch, NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES);
}

void batch_message(struct batch *batch, uint16_t type, int flags)
{
	open_message(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
		     (uint16_t)((flags & BATCH_CREATE ? NLM_F_CREATE : 0) | (flags & BATCH_ACK ? NLM_F_ACK : 0)), batch->family, 0);
	if (flags & BATCH_ACK)
		batch->acked = batch->sequence;
}

void batch_end(struct batch *batch)
{
	open_message(batch, NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES);
	close_message(batch);
}

void put_bytes(struct batch *batch, uint16_t attribute, const void *value, size_t length)
{
	struct nlattr header = { .nla_len = (uint16_t)(sizeof header + length), .nla_type = attribute };

	append(batch, &header, sizeof header);
	append(batch, value, length);
}

void put_text(struct batch *batch, uint16_t attribute, const char *value)
{
	put_bytes(batch, attribute, value, strlen(value) + 1);
}

void put_u32(struct batch *batch, uint16_t attribute, uint32_t value)
{
	uint32_t network = htonl(value);

	put_bytes(batch, attribute, &network, sizeof network);
}

size_t nest(struct batch *batch, uint16_t attribute)
{
	struct nlattr header = { .nla_type = (uint16_t)(attribute | NLA_F_NESTED) };
	size_t opened = batch->length;

	append(batch, &header, sizeof header);
	return opened;
}

void unnest(struct batch *batch, size_t opened)
{
	uint16_t length = (uint16_t)(batch->length - opened);

	if (!batch->overflow)
		memcpy(batch->bytes + opened, &length, sizeof length);
}

int batch_commit(int netlink, const struct batch *batch)
{
	uint8_t bytes[4096];
	int error = 0;
	bool done = false;
	ssize_t n;

	if (batch->overflow || !batch->acked)
		return EMSGSIZE;
	netlink_drain(netlink);
	if (netlink_send(netlink, batch->bytes, batch->length) != 0)
		return errno;
	while ((n = recv(netlink, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
		struct span received = { bytes, (size_t)n }, body;
		struct nlmsghdr header;
		enum netlink_next next;

		while ((next = netlink_next(&received, &header, &body)) == NETLINK_MESSAGE) {
			int verdict = header.nlmsg_type == NLMSG_ERROR ? netlink_verdict(body) : 0;

			if (verdict && !error)
				error = verdict;
			if (header.nlmsg_type == NLMSG_ERROR && !verdict && header.nlmsg_seq == batch->acked)
				done = true;
		}
		if (next == NETLINK_MALFORMED)
			return EBADMSG;
	}
	if (error)
		return error;
	return done ? 0 : n < 0 && errno != EAGAIN ? errno : EBADMSG;
}
