/* The layout of sendmsg(). */
#pragma once

#include "calls.h"

struct piece {
	const void *start;
	size_t length;
};

struct message {
	const void *address;
	unsigned address_length;
	const struct piece *pieces;
	size_t count;
	const void *control;
	size_t control_length;
	int flags;
};
