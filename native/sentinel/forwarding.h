/* The settings by which a pod passes packets on, in the network namespace of the caller. */
#ifndef FORWARDING_H
#define FORWARDING_H

#include <stdbool.h>

/*
 * A packet to the heir leaves by the interface it came in by, so the kernel would send a client of IPv4 an ICMP redirect. Returns 0
 * or an errno.
 */
int forwarding_send_no_redirects(void);

/* Turns forwarding on: of IPv4, and with `both` of IPv6 if the kernel has it. Returns 0 or an errno for IPv4, and logs one for IPv6. */
int forwarding_begin(bool both);

#endif
