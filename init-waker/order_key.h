#ifndef ORDER_KEY_H
#define ORDER_KEY_H

#include <stdbool.h>

#include "order_protocol.h"

/*
 * The key that an order must contain. The kernel only tells that a peer is outside our pid namespace, and so are the
 * pod's other containers, with the same user. These see neither our directory nor our /proc, so they cannot read the
 * key.
 */
struct order_key {
	char text[ORDER_KEY_LENGTH];
};

/* Draws a key and writes it to `directory`/hold.key, mode 0400, replacing an earlier one. 0, or -1 and errno. */
int order_key_keep(struct order_key *key, const char *directory);

/* Removes the file. */
void order_key_drop(const char *directory);

/* Compares in constant time. `text`: ORDER_KEY_LENGTH bytes, or NULL for none. */
bool order_key_is(const struct order_key *key, const char *text);

#endif
