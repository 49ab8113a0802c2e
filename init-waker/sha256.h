#ifndef SHA256_H
#define SHA256_H

#include <sha2.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = SHA256_DIGEST_LENGTH, SHA256_HEX_LENGTH = 2 * SHA256_SIZE };

/* The SHA-256 of `length` bytes at `message`, by libmd (docs/adr/0120-sha-256-of-libmd.md). */
static inline void sha256(const void *message, size_t length, uint8_t digest[SHA256_SIZE])
{
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, message, length);
	SHA256Final(digest, &context);
}

#endif
