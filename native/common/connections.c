#include "connections.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/* The largest part of a dump that the kernel sends at once. */
enum { ROOM = 32768 };

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

static struct question question_of(uint16_t type, uint16_t flags, int family, uint32_t states)
{
	return (struct question){
		.header = { .nlmsg_len = sizeof(struct question), .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) },
		.request = { .sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = states },
	};
}

int connections_each(int netlink, int family, uint32_t states, uint8_t extensions,
		     void (*each)(void *context, const struct inet_diag_msg *one, struct span more), void *context)
{
	const size_t skipped = NLMSG_ALIGN(sizeof(struct inet_diag_msg));
	struct question question = question_of(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, family, states);
	uint8_t answer[ROOM];

	question.request.idiag_ext = extensions;
	netlink_drain(netlink);
	if (netlink_send(netlink, &question, sizeof question) != 0)
		return errno;
	for (;;) {
		ssize_t length = recv(netlink, answer, sizeof answer, 0);
		struct span received = { answer, length < 0 ? 0 : (size_t)length }, body;
		struct nlmsghdr header;

		if (length < 0)
			return errno;
		if (length == 0)
			return EBADMSG;
		while (netlink_next(&received, &header, &body) == NETLINK_MESSAGE) {
			struct inet_diag_msg one;

			if (header.nlmsg_type == NLMSG_DONE)
				return 0;
			if (header.nlmsg_type == NLMSG_ERROR) {
				int error = netlink_verdict(body);

				/* A kernel without IPv6 has no connections of it. */
				return error == ENOENT && family == AF_INET6 ? 0 : error;
			}
			if (body.length < sizeof one)
				continue;
			memcpy(&one, body.at, sizeof one);
			each(context, &one,
			     body.length > skipped ? (struct span){ body.at + skipped, body.length - skipped } : (struct span){ NULL, 0 });
		}
	}
}

int connections_end(int netlink, int family, const struct inet_diag_sockid *id)
{
	struct question order = question_of(SOCK_DESTROY, NLM_F_ACK, family, UNFINISHED);
	uint8_t answer[512];
	struct nlmsghdr header;
	struct span received, body;
	ssize_t length;

	order.request.id = *id;
	if (netlink_send(netlink, &order, sizeof order) != 0 || (length = recv(netlink, answer, sizeof answer, 0)) < 0)
		return errno;
	received = (struct span){ answer, (size_t)length };
	return netlink_next(&received, &header, &body) == NETLINK_MESSAGE ? netlink_verdict(body) : EBADMSG;
}
