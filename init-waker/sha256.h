#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX_LENGTH = 64 };

/* The SHA-256 of `length` bytes at `message` (FIPS 180-4). */
void sha256(const void *message, size_t length, uint8_t digest[SHA256_SIZE]);

#endif
