#include "address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct address address_of(uint8_t family, const void *bytes)
{
	struct address address = { .family = family, .length = family == AF_INET ? 4 : 16 };

	memcpy(address.bytes, bytes, address.length);
	return address;
}

/* A redirect to ::1 would lead to the pod itself: the kernel refuses that address only before it translates one. */
static bool is_of_one_pod(const struct in6_addr *address)
{
	return !IN6_IS_ADDR_UNSPECIFIED(address) && !IN6_IS_ADDR_LOOPBACK(address) && !IN6_IS_ADDR_MULTICAST(address) &&
	       !IN6_IS_ADDR_LINKLOCAL(address) && !IN6_IS_ADDR_V4MAPPED(address);
}

bool address_parse(const char *text, struct address *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, text, &four) == 1) {
		*address = address_of(AF_INET, &four);
		return four.s_addr != INADDR_ANY;
	}
	if (inet_pton(AF_INET6, text, &six) != 1 || !is_of_one_pod(&six))
		return false;
	*address = address_of(AF_INET6, &six);
	return true;
}

static void add(struct addresses *addresses, uint8_t family, const void *bytes)
{
	addresses->list[addresses->count++] = address_of(family, bytes);
}

static void read_four(struct addresses *addresses)
{
	struct ifreq interfaces[ADDRESSES_MAX];
	struct ifconf asked = { .ifc_len = sizeof interfaces, .ifc_req = interfaces };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFCONF, &asked) == 0)
		for (size_t i = 0; i < (size_t)asked.ifc_len / sizeof *interfaces; i++) {
			struct sockaddr_in address;

			memcpy(&address, &interfaces[i].ifr_addr, sizeof address);
			add(addresses, AF_INET, &address.sin_addr);
		}
	close(fd);
}

/* Each line begins with an address as 32 hexadecimal digits. */
static void read_six(struct addresses *addresses)
{
	FILE *file = fopen("/proc/thread-self/net/if_inet6", "re");
	char line[160];
	const size_t most = addresses->count + ADDRESSES_MAX;

	while (file && addresses->count < most && fgets(line, sizeof line, file)) {
		struct in6_addr address;
		bool whole = true;

		for (size_t i = 0; whole && i < sizeof address; i++)
			whole = sscanf(line + 2 * i, "%2hhx", &address.s6_addr[i]) == 1;
		if (whole && !IN6_IS_ADDR_LOOPBACK(&address))
			add(addresses, AF_INET6, &address);
	}
	if (file)
		fclose(file);
}

void addresses_read(struct addresses *addresses)
{
	addresses->count = 0;
	read_four(addresses);
	read_six(addresses);
}

bool addresses_have(const struct addresses *addresses, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < addresses->count; i++)
		if (addresses->list[i].length == length && memcmp(addresses->list[i].bytes, bytes, length) == 0)
			return true;
	return false;
}
