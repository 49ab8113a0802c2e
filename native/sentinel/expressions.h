/* The parts of nftables tables that a redirect and a switch have in common. */
#ifndef EXPRESSIONS_H
#define EXPRESSIONS_H

#include "nfnetlink.h"

/* The nesting offsets of an open expression of a rule. */
struct expression {
	size_t element, data;
};

struct expression expression(struct batch *batch, const char *name);
void end_expression(struct batch *batch, struct expression opened);
void put_data(struct batch *batch, uint16_t attribute, const void *value, size_t length);

/* Loads a value of `meta` or `ct` into register 1. */
void load(struct batch *batch, const char *name, uint32_t key);
/* Ends the rule unless the comparison holds. */
void compare(struct batch *batch, uint32_t reg, uint32_t operation, const void *value, size_t length);

/* Ends the rule for packets of the loopback interface. `key`: NFT_META_IIF or NFT_META_OIF. */
void interface_is_other(struct batch *batch, uint32_t key);

/* Loads a part of a packet into a register. `base`: NFT_PAYLOAD_*. */
void payload(struct batch *batch, uint32_t reg, uint32_t base, uint32_t offset, uint32_t length);
/* Ends the rule unless the set has what is in register 1. `flags`: 0, or NFT_LOOKUP_F_INV to end it if the set has that. */
void lookup(struct batch *batch, const char *set, uint32_t flags);
/* Keeps the bits of a register that are set in `bits`. */
void mask(struct batch *batch, uint32_t reg, const void *bits, size_t length);
/* Ends the rule for other protocols than this one, IPPROTO_*. Leaves the protocol in register 1. */
void protocol_is(struct batch *batch, uint8_t protocol);
/* Ends the rule unless the packet begins a TCP connection. Uses register 2. */
void tcp_syn(struct batch *batch);
/* Ends the rule unless the packet is of this protocol and begins a conversation. Uses registers 1 and 2. */
void is_new(struct batch *batch, uint8_t protocol);
/* For tables of IPv4 or IPv6. */
void reject(struct batch *batch, uint8_t protocol);

void table_message(struct batch *batch, const char *table, uint16_t type, int flags);
/* Removes the table if there is one. */
void table_remove(struct batch *batch, const char *table, int flags);
/* Replaces the table by an empty one. */
void table_replace(struct batch *batch, const char *table);

/* `type` is the number of nft itself, so that `nft list` can print the table. `length`: that of a key. */
struct set_kind {
	uint32_t id, flags, type, length;
};

/* Opens a message that adds a set, or a map whose data the caller describes in the same message. */
void new_set(struct batch *batch, const char *table, const char *name, struct set_kind kind);
void chain(struct batch *batch, const char *table, const char *name, const char *type, uint32_t hook, int priority);
/* Opens a rule; pass the result to unnest() to close it. */
size_t rule(struct batch *batch, const char *table, const char *chain_name);
/* Opens a message about elements. A deletion without a particular element deletes all. */
void elements_message(struct batch *batch, const char *table, const char *set, uint16_t type, int flags);

#endif
