/* Talks to the kernel over netlink. */
#ifndef NETLINK_H
#define NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* A part of received bytes. */
struct span {
	const uint8_t *at;
	size_t length;
};

/* Returns a socket of that protocol, bound for good to the caller's network namespace; -1 with errno. */
int netlink_open(int protocol);

/* Sends whole messages to the kernel; -1 with errno. */
int netlink_send(int netlink, const void *bytes, size_t length);

/* Discards messages left over from an earlier answer. */
void netlink_drain(int netlink);

enum netlink_next { NETLINK_END, NETLINK_MESSAGE, NETLINK_MALFORMED };

/* Takes the first message off the received bytes: its header, and the body behind it. */
enum netlink_next netlink_next(struct span *received, struct nlmsghdr *header, struct span *body);

/* Returns the content of the attribute of that type among those of a body, or of another attribute's content; .at is NULL if there is none. */
struct span netlink_attribute(struct span in, uint16_t type);

/* Returns the errno in the body of an NLMSG_ERROR; 0: an acknowledgement. */
int netlink_verdict(struct span body);

#endif
