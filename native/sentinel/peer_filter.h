/*
 * A filter of the kernel on the socket for heartbeats: it drops what comes from no address of a peer, before it takes any room in the
 * buffer. So a flood from elsewhere displaces no beat. A sender can forge an address; the code of each datagram is what counts.
 */
#ifndef PEER_FILTER_H
#define PEER_FILTER_H

#include "voting.h"

/* Lets datagrams from the peers pass, and no others. Without a filter, which a failure leads to, all pass; it is logged. */
void peer_filter(const struct voting *voting);

#endif
