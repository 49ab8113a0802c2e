/* Addresses at which a saved application listened. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <netinet/in.h>
#include <stdbool.h>

struct listening_address {
	struct sockaddr_in6 address; /* sockaddr_in has family and port at the same places */
	int only_ipv6;
};

/* Parses ADDRESS/PORT[/6]. */
bool parse_address(const char *text, struct listening_address *address);

/* Returns a socket that listens there beside others of this user (SO_REUSEPORT), or -1 with errno. */
int open_address(const struct listening_address *address);

#endif
