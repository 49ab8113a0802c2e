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

/* Keeps the bits of a register that are set in `bits`. */
void mask(struct batch *batch, uint32_t reg, const void *bits, size_t length);
/* Ends the rule for other protocols than this one, IPPROTO_*. Leaves the protocol in register 1. */
void protocol_is(struct batch *batch, uint8_t protocol);
/* Ends the rule unless the packet begins a TCP connection. Uses register 2. */
void tcp_syn(struct batch *batch);
/* Ends the rule for answers to what the pod has sent by UDP. */
void is_asked_here(struct batch *batch);
/* For tables of IPv4 or IPv6. */
void reject(struct batch *batch, uint8_t protocol);

void table_message(struct batch *batch, const char *table, uint16_t type, int flags);
/* Replaces the table by an empty one. */
void table_replace(struct batch *batch, const char *table);
void chain(struct batch *batch, const char *table, const char *name, const char *type, uint32_t hook, int priority);
/* Opens a rule; pass the result to unnest() to close it. */
size_t rule(struct batch *batch, const char *table, const char *chain_name);
/* Opens a message about elements. A deletion without a particular element deletes all. */
void elements_message(struct batch *batch, const char *table, const char *set, uint16_t type, int flags);

#endif
