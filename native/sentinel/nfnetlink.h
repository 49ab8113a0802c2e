/* Batches of nftables messages, built once and sent as they are, and the kernel's verdict on them. */
#ifndef NFNETLINK_H
#define NFNETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Filled from front to back; `overflow` stays set once something did not fit. */
struct batch {
	uint8_t *bytes;
	size_t length, room;
	size_t message; /* where the open message begins */
	uint32_t sequence; /* of the last message */
	uint32_t acked; /* of the one whose acknowledgement says that all went well; 0: none yet */
	bool overflow;
};

/* A NETLINK_NETFILTER socket of the network namespace that the caller is in; -1 with errno. Stays there for good. */
int nfnetlink_open(void);

/* Sends a closed batch and waits for the verdict, which the kernel gives before send() returns. 0 or an errno. */
int batch_commit(int netlink, const struct batch *batch);

void batch_begin(struct batch *batch, void *bytes, size_t room);
void batch_end(struct batch *batch);

enum { BATCH_CREATE = 1, BATCH_ACK = 2 };

/* Opens a message for IPv4's tables, closing the one before. `type` is an NFT_MSG_*, `flags` of BATCH_*. */
void batch_message(struct batch *batch, uint16_t type, int flags);

void put_bytes(struct batch *batch, uint16_t attribute, const void *value, size_t length);
void put_text(struct batch *batch, uint16_t attribute, const char *value);
/* In network byte order, as nftables wants its numbers. */
void put_u32(struct batch *batch, uint16_t attribute, uint32_t value);

/* Opens an attribute that holds others; what it returns closes it. */
size_t nest(struct batch *batch, uint16_t attribute);
void unnest(struct batch *batch, size_t opened);

#endif
