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

void table_message(struct batch *batch, const char *table, uint16_t type, int flags);
/* Replaces the table by an empty one. */
void table_replace(struct batch *batch, const char *table);
void chain(struct batch *batch, const char *table, const char *name, const char *type, uint32_t hook, int priority);
/* Opens a rule; pass the result to unnest() to close it. */
size_t rule(struct batch *batch, const char *table, const char *chain_name);
/* Opens a message about elements. A deletion without a particular element deletes all. */
void elements_message(struct batch *batch, const char *table, const char *set, uint16_t type, int flags);

#endif
