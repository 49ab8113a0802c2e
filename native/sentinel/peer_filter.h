/*
 * A filter of the kernel on the socket for heartbeats: it drops what does not begin with the tag of a peer, before that takes any room
 * in the buffer. So no flood displaces a beat, from whatever address it comes. Only who reads what the nodes send to each other can
 * repeat a tag; the code of each datagram is what counts.
 */
#ifndef PEER_FILTER_H
#define PEER_FILTER_H

#include "voting.h"

/* Lets datagrams with the tags of the peers pass, and no others. Without a filter, which a failure leads to, all pass; it is logged. */
void peer_filter(const struct voting *voting);

#endif
