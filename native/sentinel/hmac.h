/* HMAC-SHA-256 (RFC 2104), over the SHA-256 of libmd. */
#ifndef HMAC_H
#define HMAC_H

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HMAC_BYTES = SHA256_DIGEST_LENGTH, HMAC_KEY_BYTES = 32 };

void hmac(const uint8_t key[HMAC_KEY_BYTES], const void *message, size_t length, uint8_t code[HMAC_BYTES]);

/* Compares in a time that does not depend on the bytes. */
bool hmac_is(const uint8_t key[HMAC_KEY_BYTES], const void *message, size_t length, const uint8_t code[HMAC_BYTES]);

#endif
