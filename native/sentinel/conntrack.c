#include "conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netlink.h"

enum { DUMP_BYTES = 32768, TUPLE_BYTES = 128, TUPLES_MAX = 4096 };

/* Identifies a connection: an attribute as the kernel wrote it. */
struct tuple {
	uint8_t family;
	uint16_t length;
	uint8_t bytes[TUPLE_BYTES];
};

struct tuples {
	struct tuple *list;
	size_t count, room;
};

static bool among(const struct addresses *addresses, struct span address)
{
	return address.at && addresses_have(addresses, address.at, address.length);
}

static uint32_t word(struct span span)
{
	uint32_t value = 0;

	if (span.at && span.length == sizeof value)
		memcpy(&value, span.at, sizeof value);
	return value;
}

static int byte(struct span span)
{
	return span.at && span.length >= 1 ? span.at[0] : -1;
}

static bool concerns(struct span connection, struct span tuple, const struct addresses *addresses, uint8_t family)
{
	const bool four = family == AF_INET;
	struct span ip = netlink_attribute(tuple, CTA_TUPLE_IP);
	int protocol = byte(netlink_attribute(netlink_attribute(tuple, CTA_TUPLE_PROTO), CTA_PROTO_NUM)), state;

	if (ntohl(word(netlink_attribute(connection, CTA_STATUS))) & IPS_DST_NAT)
		return false;
	if (!among(addresses, netlink_attribute(ip, four ? CTA_IP_V4_DST : CTA_IP_V6_DST)) ||
	    among(addresses, netlink_attribute(ip, four ? CTA_IP_V4_SRC : CTA_IP_V6_SRC)))
		return false;
	if (protocol == IPPROTO_UDP)
		return true;
	state = byte(netlink_attribute(netlink_attribute(netlink_attribute(connection, CTA_PROTOINFO), CTA_PROTOINFO_TCP), CTA_PROTOINFO_TCP_STATE));
	return protocol == IPPROTO_TCP &&
	       (state == TCP_CONNTRACK_SYN_SENT || state == TCP_CONNTRACK_SYN_RECV || state == TCP_CONNTRACK_CLOSE);
}

static bool keep(struct tuples *tuples, struct span tuple, uint8_t family)
{
	if (tuple.length > TUPLE_BYTES || tuples->count == TUPLES_MAX)
		return false;
	if (tuples->count == tuples->room) {
		size_t room = tuples->room ? 2 * tuples->room : 16;
		struct tuple *list = realloc(tuples->list, room * sizeof *list);

		if (!list)
			return false;
		tuples->list = list;
		tuples->room = room;
	}
	tuples->list[tuples->count].family = family;
	tuples->list[tuples->count].length = (uint16_t)tuple.length;
	memcpy(tuples->list[tuples->count++].bytes, tuple.at, tuple.length);
	return true;
}

static int request(int netlink, uint16_t type, uint16_t flags, const struct tuple *tuple)
{
	struct {
		struct nlmsghdr header;
		struct nfgenmsg more;
		struct nlattr attribute;
		uint8_t tuple[TUPLE_BYTES];
	} message = {
		.header = { .nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type), .nlmsg_flags = NLM_F_REQUEST | flags },
		.more = { .nfgen_family = tuple ? tuple->family : AF_UNSPEC },
	};

	message.header.nlmsg_len = NLMSG_HDRLEN + sizeof message.more;
	if (tuple) {
		message.attribute.nla_type = CTA_TUPLE_ORIG | NLA_F_NESTED;
		message.attribute.nla_len = (uint16_t)(NLA_HDRLEN + tuple->length);
		memcpy(message.tuple, tuple->bytes, tuple->length);
		message.header.nlmsg_len += (uint32_t)NLA_ALIGN((size_t)message.attribute.nla_len);
	}
	return netlink_send(netlink, &message, message.header.nlmsg_len);
}

/* Reads one datagram of a dump. False at the end of the dump. */
static bool read_some(struct span received, const struct addresses *addresses, struct tuples *found)
{
	struct nlmsghdr header;
	enum netlink_next next;
	struct span body;

	while ((next = netlink_next(&received, &header, &body)) == NETLINK_MESSAGE) {
		size_t skipped = sizeof(struct nfgenmsg);

		if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR)
			return false;
		if (body.length > skipped) {
			struct span connection = { body.at + skipped, body.length - skipped };
			struct span tuple = netlink_attribute(connection, CTA_TUPLE_ORIG);
			struct nfgenmsg about;

			memcpy(&about, body.at, sizeof about);
			if (tuple.at && concerns(connection, tuple, addresses, about.nfgen_family) &&
			    !keep(found, tuple, about.nfgen_family))
				return false;
		}
	}
	return next == NETLINK_END;
}

int conntrack_forget(int netlink, const struct addresses *addresses)
{
	uint8_t bytes[DUMP_BYTES];
	struct tuples found = { 0 };
	ssize_t n;
	int count;

	netlink_drain(netlink);
	/* One dump is of all families, because for each the kernel walks through the table of the whole machine. */
	if (request(netlink, IPCTNL_MSG_CT_GET, NLM_F_DUMP, NULL) != 0)
		return -1;
	/* recv() need not wait: the kernel writes the next part of the dump while we take this one. */
	while ((n = recv(netlink, bytes, sizeof bytes, MSG_DONTWAIT)) > 0 &&
	       read_some((struct span){ bytes, (size_t)n }, addresses, &found))
		;
	for (size_t i = 0; i < found.count; i++)
		request(netlink, IPCTNL_MSG_CT_DELETE, 0, &found.list[i]);
	count = (int)found.count;
	free(found.list);
	errno = n < 0 ? errno : 0;
	return n < 0 ? -1 : count;
}
