#include "message.h"

#include <stdio.h>
#include <string.h>

#include "line.h"

static void append(struct message *message, const char *text)
{
	size_t length = strlen(text);

	/* One byte stays free for the newline. */
	if (message->length + length + 2 > sizeof message->text)
		return;
	memcpy(message->text + message->length, text, length + 1);
	message->length += length;
}

void message_begin(struct message *message, const char *id, const char *word)
{
	message->length = 0;
	append(message, id);
	append(message, " ");
	append(message, word);
}

void message_number(struct message *message, const char *key, int64_t value)
{
	char text[64];

	snprintf(text, sizeof text, " %s=%lld", key, (long long)value);
	append(message, text);
}

void message_text(struct message *message, const char *key, const char *value)
{
	char text[MESSAGE_BYTES - 64];
	int used = snprintf(text, sizeof text, " %s=", key);

	if (value_encode(value, text + used, sizeof text - (size_t)used))
		append(message, text);
}

void message_end(struct message *message)
{
	message->text[message->length++] = '\n';
	message->text[message->length] = '\0';
}
