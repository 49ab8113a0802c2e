#ifndef ORDER_KEY_H
#define ORDER_KEY_H

#include <stdbool.h>

#include "order_protocol.h"

/*
 * What an order has to name. The kernel says of a peer that it is outside of our pid namespace, which other containers of
 * the pod are, too, as the same user: they see neither our directory nor our /proc, so they cannot read this.
 */
struct order_key {
	char text[ORDER_KEY_LENGTH];
};

/* Draws a key and writes it to `directory`/hold.key, mode 0400, in place of an earlier one. 0, or -1 and errno. */
int order_key_keep(struct order_key *key, const char *directory);

/* Takes the file away. */
void order_key_drop(const char *directory);

/* `text`: ORDER_KEY_LENGTH bytes, or NULL for none. In the same time, however much of it is right. */
bool order_key_is(const struct order_key *key, const char *text);

#endif
