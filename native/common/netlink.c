#include "netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int netlink_open(int protocol)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int one = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	/* Keeps the request out of the acknowledgements. Without it they are longer, nothing else. */
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one);
	return fd;
}

int netlink_send(int netlink, const void *bytes, size_t length)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	return sendto(netlink, bytes, length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ? -1 : 0;
}

void netlink_drain(int netlink)
{
	uint8_t bytes[4096];

	while (recv(netlink, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

enum netlink_next netlink_next(struct span *received, struct nlmsghdr *header, struct span *body)
{
	size_t step;

	if (received->length < sizeof *header)
		return NETLINK_END;
	memcpy(header, received->at, sizeof *header);
	if (header->nlmsg_len < sizeof *header || header->nlmsg_len > received->length)
		return NETLINK_MALFORMED;
	*body = (struct span){ received->at + sizeof *header, header->nlmsg_len - sizeof *header };
	step = NLMSG_ALIGN((size_t)header->nlmsg_len);
	if (step > received->length)
		step = received->length;
	*received = (struct span){ received->at + step, received->length - step };
	return NETLINK_MESSAGE;
}

struct span netlink_attribute(struct span in, uint16_t type)
{
	struct nlattr header;

	while (in.at && in.length >= sizeof header) {
		size_t step;

		memcpy(&header, in.at, sizeof header);
		if (header.nla_len < sizeof header || header.nla_len > in.length)
			break;
		if ((header.nla_type & NLA_TYPE_MASK) == type)
			return (struct span){ in.at + sizeof header, header.nla_len - sizeof header };
		step = NLA_ALIGN((size_t)header.nla_len);
		if (step > in.length)
			break;
		in = (struct span){ in.at + step, in.length - step };
	}
	return (struct span){ NULL, 0 };
}

int netlink_verdict(struct span body)
{
	int32_t verdict;

	if (body.length < sizeof verdict)
		return EBADMSG;
	memcpy(&verdict, body.at, sizeof verdict);
	return -verdict;
}
