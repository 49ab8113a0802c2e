/* Addresses of IPv4 and IPv6. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address {
	uint8_t family; /* AF_INET or AF_INET6, which are the numbers of NFPROTO_IPV4 and NFPROTO_IPV6, too */
	uint8_t length; /* 4 or 16 */
	uint8_t bytes[16]; /* network byte order */
};

/* ADDRESSES_MAX: of each family. */
enum { ADDRESSES_MAX = 16 };

struct addresses {
	struct address list[2 * ADDRESSES_MAX];
	size_t count;
};

/*
 * Reads the target of a redirect. False if the text is no address, or one that no other pod can have. Exception: 127.0.0.1, where
 * the kernel drops what comes from elsewhere.
 */
bool address_parse(const char *text, struct address *address);

/* Reads the addresses of the caller's network namespace, but not those of its loopback interface for IPv6. */
void addresses_read(struct addresses *addresses);

/* True if one of them has these bytes. */
bool addresses_have(const struct addresses *addresses, const uint8_t *bytes, size_t length);

#endif
