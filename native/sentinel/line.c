#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_range(char c, char low, char high)
{
	return c >= low && c <= high;
}

static int hex_digit(char c)
{
	return in_range(c, '0', '9') ? c - '0' : in_range(c, 'A', 'F') ? c - 'A' + 10 : in_range(c, 'a', 'f') ? c - 'a' + 10 : -1;
}

/*
 * Decodes a value in place. False for a byte that should have been encoded, and for a NUL, which no value may contain.
 */
static bool decode(char *value)
{
	char *out = value;

	for (char *in = value; *in; in++) {
		if (*in == '%') {
			int high = hex_digit(in[1]), low = high < 0 ? -1 : hex_digit(in[2]);

			if (low < 0 || (high == 0 && low == 0))
				return false;
			*out++ = (char)(high * 16 + low);
			in += 2;
		} else if (in_range(*in, 0x21, 0x7e)) {
			*out++ = *in;
		} else {
			return false;
		}
	}
	*out = '\0';
	return true;
}

static bool is_id(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= ID_DIGITS && !text[digits] && (text[0] != '0' || digits == 1);
}

static bool is_word(const char *text, const char *allowed)
{
	size_t length = strspn(text, allowed);

	return length > 0 && length <= WORD_BYTES && !text[length] && in_range(text[0], 'a', 'z');
}

/* Cuts off the next word; NULL at the end. Two spaces in a row make an empty word, which no caller accepts. */
static char *next_word(char **rest)
{
	char *word = *rest, *space;

	if (!word)
		return NULL;
	space = strchr(word, ' ');
	if (space)
		*space = '\0';
	*rest = space ? space + 1 : NULL;
	return word;
}

bool line_parse(char *line, size_t length, struct request *request)
{
	char *rest = line, *word;

	request->id = NULL;
	request->verb = NULL;
	request->count = 0;
	if (length > LINE_BYTES || memchr(line, '\0', length))
		return false;
	line[length] = '\0';
	word = next_word(&rest);
	if (!is_id(word))
		return false;
	request->id = word;
	word = next_word(&rest);
	if (!word || !is_word(word, "abcdefghijklmnopqrstuvwxyz-"))
		return false;
	request->verb = word;
	while ((word = next_word(&rest))) {
		char *equals = strchr(word, '=');

		if (!equals || request->count == LINE_FIELDS)
			return false;
		*equals = '\0';
		if (!is_word(word, "abcdefghijklmnopqrstuvwxyz0123456789") || !decode(equals + 1))
			return false;
		request->fields[request->count++] = (struct field){ .key = word, .value = equals + 1 };
	}
	return true;
}

bool value_encode(const char *value, char *out, size_t size)
{
	size_t used = 0;

	for (; *value; value++) {
		bool plain = in_range(*value, 0x21, 0x7e) && *value != '%';

		if (used + (plain ? 1 : 3) >= size)
			return false;
		if (plain)
			out[used++] = *value;
		else
			used += (size_t)sprintf(out + used, "%%%02X", (unsigned char)*value);
	}
	if (used >= size)
		return false;
	out[used] = '\0';
	return true;
}

const char *request_value(const struct request *request, const char *key)
{
	for (size_t i = 0; i < request->count; i++)
		if (strcmp(request->fields[i].key, key) == 0)
			return request->fields[i].value;
	return NULL;
}

void list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

char **request_list(const struct request *request, const char *key)
{
	char **list = calloc(request->count + 1, sizeof *list);
	size_t count = 0;

	for (size_t i = 0; list && i < request->count; i++)
		if (strcmp(request->fields[i].key, key) == 0 && !(list[count++] = strdup(request->fields[i].value))) {
			list_free(list);
			return NULL;
		}
	return list;
}

/* One key of a verb's list. */
struct rule {
	const char *name;
	size_t length;
	bool numbered;
	char often;
};

static const char *next_rule(const char *keys, struct rule *rule)
{
	keys += strspn(keys, " ");
	if (!*keys)
		return NULL;
	rule->name = keys;
	rule->length = strcspn(keys, "#!?+*");
	keys += rule->length;
	rule->numbered = *keys == '#';
	keys += rule->numbered;
	rule->often = *keys;
	return keys + 1;
}

static bool matches(const struct rule *rule, const char *key)
{
	if (strncmp(key, rule->name, rule->length) != 0)
		return false;
	key += rule->length;
	if (!rule->numbered)
		return !*key;
	return *key && !key[strspn(key, "0123456789")];
}

const char *request_check(const struct request *request, const char *keys)
{
	static char wrong[WORD_BYTES + 16];
	struct rule rule;
	size_t known = 0;

	while ((keys = next_rule(keys, &rule))) {
		size_t count = 0;

		for (size_t i = 0; i < request->count; i++)
			count += matches(&rule, request->fields[i].key);
		known += count;
		if (count == 0 && (rule.often == '!' || rule.often == '+')) {
			snprintf(wrong, sizeof wrong, "missing-%.*s", (int)rule.length, rule.name);
			return wrong;
		}
		if (count > 1 && (rule.often == '!' || rule.often == '?')) {
			snprintf(wrong, sizeof wrong, "repeated-%.*s", (int)rule.length, rule.name);
			return wrong;
		}
	}
	return known == request->count ? NULL : "unknown-key";
}
