/* Builds batches of nftables messages, sends them, and reads the kernel's acknowledgements. */
#ifndef NFNETLINK_H
#define NFNETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Filled from front to back; `overflow` stays set once a message did not fit. */
struct batch {
	uint8_t *bytes;
	size_t length, room;
	size_t message; /* offset of the open message */
	uint32_t sequence; /* sequence number of the last message */
	uint32_t acked; /* sequence number whose acknowledgement means success; 0: none yet */
	bool overflow;
	uint8_t family; /* of the tables, NFPROTO_*; IPv4 unless it is set after batch_begin() */
};

/* Sends a closed batch over a NETLINK_NETFILTER socket and reads the kernel's verdict, which arrives before send() returns. Returns 0 or an errno. */
int batch_commit(int netlink, const struct batch *batch);

void batch_begin(struct batch *batch, void *bytes, size_t room);
void batch_end(struct batch *batch);

enum { BATCH_CREATE = 1, BATCH_ACK = 2 };

/* Opens a message for the tables and closes the one before. `type` is an NFT_MSG_*, `flags` a set of BATCH_*. */
void batch_message(struct batch *batch, uint16_t type, int flags);

void put_bytes(struct batch *batch, uint16_t attribute, const void *value, size_t length);
void put_text(struct batch *batch, uint16_t attribute, const char *value);
/* Puts a number in network byte order, as nftables requires. */
void put_u32(struct batch *batch, uint16_t attribute, uint32_t value);

/* Opens a nested attribute; pass the result to unnest() to close it. */
size_t nest(struct batch *batch, uint16_t attribute);
void unnest(struct batch *batch, size_t opened);

#endif
