#include "order_protocol.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

struct verb {
	const char *name;
	enum order_verb verb;
	enum { NO_NUMBER, MAY_NUMBER, MUST_NUMBER } number;
	int64_t max;
};

static const struct verb verbs[] = {
	{ "state", ORDER_STATE, NO_NUMBER, 0 },
	{ "start", ORDER_START, MAY_NUMBER, ORDER_ARGUMENT_BYTES_MAX },
	{ "adopt", ORDER_ADOPT, MUST_NUMBER, ORDER_PID_MAX },
	{ "release", ORDER_RELEASE, NO_NUMBER, 0 },
	{ "end", ORDER_END, MUST_NUMBER, 255 },
	{ "run", ORDER_RUN, MUST_NUMBER, ORDER_ARGUMENT_BYTES_MAX },
	{ "wait", ORDER_WAIT, MUST_NUMBER, ORDER_PID_MAX },
	{ "kill", ORDER_KILL, MUST_NUMBER, ORDER_PID_MAX },
};

/* Parses `<verb>[ <number>]`, which must be the whole text. */
static bool parse_verb(const char *text, size_t length, struct order *order)
{
	const char *space = memchr(text, ' ', length);
	size_t name = space ? (size_t)(space - text) : length;

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		const struct verb *verb = &verbs[i];

		if (strlen(verb->name) != name || memcmp(text, verb->name, name) != 0)
			continue;
		*order = (struct order){ .verb = verb->verb };
		if (!space)
			return verb->number != MUST_NUMBER;
		return verb->number != NO_NUMBER &&
		       parse_digits(space + 1, length - name - 1, verb->max, &order->number);
	}
	return false;
}

/* Removes the head before the verb: the version, and with the second version the key. */
static bool take_head(const char **text, size_t *length, const char **key)
{
	static const char plain[] = "understudy/1 ", keyed[] = "understudy/2 ";
	size_t head = sizeof plain - 1;

	*key = NULL;
	if (*length < head)
		return false;
	if (memcmp(*text, keyed, head) == 0) {
		*key = *text + head;
		head += ORDER_KEY_LENGTH + 1;
		if (*length < head || (*text)[head - 1] != ' ')
			return false;
	} else if (memcmp(*text, plain, head) != 0) {
		return false;
	}
	*text += head;
	*length -= head;
	return true;
}

/* Counts the strings of `start`; false unless each is terminated and the first, the program, is not empty. */
static bool count_arguments(const char *bytes, size_t length, size_t *count)
{
	*count = 0;
	if (length == 0)
		return true;
	if (bytes[length - 1] != '\0' || bytes[0] == '\0')
		return false;
	for (size_t i = 0; i < length; i++)
		*count += bytes[i] == '\0';
	return *count <= ORDER_ARGUMENTS_MAX;
}

enum order_parse order_parse(const char *bytes, size_t length, struct order *order)
{
	const char *verb = bytes, *key;
	size_t limit = length < ORDER_LINE_MAX ? length : ORDER_LINE_MAX;
	const char *newline = limit > 0 ? memchr(bytes, '\n', limit) : NULL;
	size_t line, rest;

	if (newline == NULL)
		return length >= ORDER_LINE_MAX ? ORDER_MALFORMED : ORDER_INCOMPLETE;
	line = (size_t)(newline - bytes);
	rest = length - line - 1;
	if (!take_head(&verb, &line, &key) || !parse_verb(verb, line, order))
		return ORDER_MALFORMED;
	order->key = key;
	if (order->verb != ORDER_START && order->verb != ORDER_RUN)
		return rest == 0 ? ORDER_COMPLETE : ORDER_MALFORMED;
	if (rest < (size_t)order->number)
		return ORDER_INCOMPLETE;
	if (rest > (size_t)order->number || !count_arguments(newline + 1, rest, &order->count))
		return ORDER_MALFORMED;
	if (order->verb == ORDER_RUN && order->count == 0)
		return ORDER_MALFORMED;
	order->arguments = newline + 1;
	return ORDER_COMPLETE;
}

size_t order_format_reply(char *out, size_t size, enum order_word word, int64_t number, int64_t unix_ns)
{
	static const char *const words[] = {
		[WORD_HOLDING] = "holding",
		[WORD_RUNNING] = "running",
		[WORD_STARTED] = "started",
		[WORD_ADOPTED] = "adopted",
		[WORD_RELEASED] = "released",
		[WORD_ENDING] = "ending",
		[WORD_KILLED] = "killed",
		[WORD_BUSY] = "busy",
		[WORD_DIED] = "died",
		[WORD_UNKNOWN] = "unknown",
		[WORD_FAILED] = "failed",
		[WORD_DENIED] = "denied",
		[WORD_MALFORMED] = "malformed",
	};
	int length = snprintf(out, size, "understudy/1 %s %lld %lld\n", words[word], (long long)number, (long long)unix_ns);

	return length > 0 && (size_t)length < size ? (size_t)length : 0;
}
