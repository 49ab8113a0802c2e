/* The wake protocol as pure functions: bytes in, verdict out. Sockets, clocks and logs are elsewhere. */
#include "wake_protocol.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "understudy/1 wake ";

static bool is_lower_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Removes `word` from the front of the text between *at and end. */
static bool take(const char **at, const char *end, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(end - *at) < length || memcmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

enum wake_parse wake_parse(const char *bytes, size_t length, struct wake_request *request)
{
	size_t limit = length < WAKE_LINE_MAX ? length : WAKE_LINE_MAX;
	const char *end = limit > 0 ? memchr(bytes, '\n', limit) : NULL;
	const char *at = bytes, *token;

	if (end == NULL)
		return length >= WAKE_LINE_MAX ? WAKE_MALFORMED : WAKE_INCOMPLETE;
	/* Coalesced requests are an error: nothing may follow the line. */
	if ((size_t)(end - bytes) + 1 != length)
		return WAKE_MALFORMED;
	if (!take(&at, end, prefix) || end - at < WAKE_TOKEN_LENGTH)
		return WAKE_MALFORMED;
	token = at;
	for (; at < token + WAKE_TOKEN_LENGTH; at++)
		if (!is_lower_hex(*at))
			return WAKE_MALFORMED;
	if (take(&at, end, " primary"))
		request->kind = WAKE_PRIMARY;
	else if (take(&at, end, " hotbackup"))
		request->kind = WAKE_HOTBACKUP;
	else
		return WAKE_MALFORMED;
	if (at != end)
		return WAKE_MALFORMED;
	memcpy(request->token, token, WAKE_TOKEN_LENGTH);
	return WAKE_REQUEST;
}

bool wake_token_matches(const char token[WAKE_TOKEN_LENGTH], const uint8_t digest[SHA256_SIZE])
{
	uint8_t actual[SHA256_SIZE];
	/* volatile: the compiler must not turn the sum into an early exit. */
	volatile uint8_t difference = 0;

	sha256(token, WAKE_TOKEN_LENGTH, actual);
	for (int i = 0; i < SHA256_SIZE; i++)
		difference = difference | (uint8_t)(actual[i] ^ digest[i]);
	return difference == 0;
}

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

bool wake_parse_digest(const char *hex, uint8_t digest[SHA256_SIZE])
{
	if (strlen(hex) != SHA256_HEX_LENGTH)
		return false;
	for (int i = 0; i < SHA256_HEX_LENGTH; i++)
		if (!is_lower_hex(hex[i]))
			return false;
	for (int i = 0; i < SHA256_SIZE; i++)
		digest[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	return true;
}

size_t wake_format_reply(char *out, size_t size, enum wake_verdict verdict, int64_t unix_ns)
{
	static const char *const words[] = {
		[VERDICT_WOKEN] = "woken",
		[VERDICT_ALREADY] = "already",
		[VERDICT_DENIED] = "denied",
		[VERDICT_MALFORMED] = "malformed",
	};
	int length = snprintf(out, size, "understudy/1 %s %lld\n", words[verdict], (long long)unix_ns);

	return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

const char *wake_kind_name(enum wake_kind kind)
{
	return kind == WAKE_PRIMARY ? "primary" : "hotbackup";
}
