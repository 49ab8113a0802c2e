/* A line to a client: `<id> <word> key=value ...`. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fits a name and a reason of maximal length with every byte encoded. */
enum { MESSAGE_BYTES = 4096 };

struct message {
	char text[MESSAGE_BYTES];
	size_t length;
};

/* Begins a message; `id` "-" for an event. */
void message_begin(struct message *message, const char *id, const char *word);
void message_number(struct message *message, const char *key, int64_t value);
/* Adds a value, or leaves it out if it does not fit. */
void message_text(struct message *message, const char *key, const char *value);
void message_end(struct message *message);

#endif
