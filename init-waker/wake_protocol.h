#ifndef WAKE_PROTOCOL_H
#define WAKE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sha256.h"

/* The longest request with its newline. A longer one is malformed before it is complete. */
enum { WAKE_LINE_MAX = 128, WAKE_TOKEN_LENGTH = 64 };

enum wake_kind { WAKE_PRIMARY, WAKE_HOTBACKUP };

enum wake_parse { WAKE_INCOMPLETE, WAKE_MALFORMED, WAKE_REQUEST };

enum wake_verdict { VERDICT_WOKEN, VERDICT_ALREADY, VERDICT_DENIED, VERDICT_MALFORMED };

struct wake_request {
	char token[WAKE_TOKEN_LENGTH]; /* lower-case hex, not terminated */
	enum wake_kind kind;
};

/*
 * Parses one request, `understudy/1 wake <token> <kind>\n`, from the bytes received so far. Pure: keeps nothing between
 * calls and reads nothing beyond `length`. `request` is filled only for WAKE_REQUEST.
 */
enum wake_parse wake_parse(const char *bytes, size_t length, struct wake_request *request);

/* True if the token's SHA-256 is `digest`; compares in constant time. */
bool wake_token_matches(const char token[WAKE_TOKEN_LENGTH], const uint8_t digest[SHA256_SIZE]);

/* Parses a SHA-256 of 64 lower-case hex digits and nothing else. */
bool wake_parse_digest(const char *hex, uint8_t digest[SHA256_SIZE]);

/* Writes `understudy/1 <verdict> <unix time in ns>\n`; returns its length, 0 if it does not fit. */
size_t wake_format_reply(char *out, size_t size, enum wake_verdict verdict, int64_t unix_ns);

const char *wake_kind_name(enum wake_kind kind);

#endif
