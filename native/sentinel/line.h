/* One request: `<id> <verb> key=value ...`, values percent-encoded. See docs/adr/0070-sentinel.md. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_BYTES = 65536, LINE_FIELDS = 1024, ID_DIGITS = 18, WORD_BYTES = 32 };

struct field {
	const char *key;
	const char *value; /* decoded; contains no NUL */
};

struct request {
	const char *id; /* NULL if the id itself could not be read */
	const char *verb;
	size_t count;
	struct field fields[LINE_FIELDS];
};

/*
 * Parses the `length` bytes of a line without its newline; line[length] must be writable. It splits and decodes in
 * place, so the request points into the line. Returns false for a malformed line; then only `id` is valid.
 */
bool line_parse(char *line, size_t length, struct request *request);

/* Writes `value` percent-encoded and NUL-terminated; false if it does not fit into `size` bytes. */
bool value_encode(const char *value, char *out, size_t size);

/* Returns the value of a key that occurs at most once, or NULL. */
const char *request_value(const struct request *request, const char *key);

/* Returns a copy of the values of a key, ending with NULL; NULL if memory is short. */
char **request_list(const struct request *request, const char *key);
void list_free(char **list);

/*
 * Checks the keys of a request against those of a verb: keys separated by spaces, each followed by `!` (once), `?` (at
 * most once), `+` (once or more) or `*` (any number); a `#` before that means that a number follows the key. Returns
 * NULL, or the error, e.g. `missing-pid`, in a buffer that is valid until the next call.
 */
const char *request_check(const struct request *request, const char *keys);

#endif
