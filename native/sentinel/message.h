/* A line to a client: `<id> <word> key=value ...`. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a name and a reason at their longest, every byte of them encoded. */
enum { MESSAGE_BYTES = 4096 };

struct message {
	char text[MESSAGE_BYTES];
	size_t length;
};

/* `id` "-" for an event. */
void message_begin(struct message *message, const char *id, const char *word);
void message_number(struct message *message, const char *key, int64_t value);
/* A value that does not fit is left out. */
void message_text(struct message *message, const char *key, const char *value);
void message_end(struct message *message);

#endif
