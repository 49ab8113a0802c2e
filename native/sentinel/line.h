/* One request: `<id> <verb> key=value ...`, values percent-encoded. See docs/adr/0070-sentinel.md. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_BYTES = 65536, LINE_FIELDS = 1024, ID_DIGITS = 18, WORD_BYTES = 32 };

struct field {
	const char *key;
	const char *value; /* decoded; no NUL inside */
};

struct request {
	const char *id; /* NULL when not even that could be read */
	const char *verb;
	size_t count;
	struct field fields[LINE_FIELDS];
};

/*
 * Parses the `length` bytes of a line without its newline; line[length] must be writable. Cuts and decodes in place:
 * the request points into the line. False when it is malformed; then only `id` means anything.
 */
bool line_parse(char *line, size_t length, struct request *request);

/* Writes `value` percent-encoded and NUL-terminated; false when it does not fit into `size` bytes. */
bool value_encode(const char *value, char *out, size_t size);

/* The value of a key that is there at most once, or NULL. */
const char *request_value(const struct request *request, const char *key);

/*
 * Checks the keys of a request against what a verb takes: keys separated by spaces, each followed by `!` (once), `?`
 * (at most once), `+` (once or more) or `*` (any number); a `#` before that means that a number follows the key.
 * Returns NULL, or what is wrong, e.g. `missing-pid`, in a buffer that is valid until the next call.
 */
const char *request_check(const struct request *request, const char *keys);

#endif
