/* The expressions of nftables rules that more than one table has. */
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

#endif
