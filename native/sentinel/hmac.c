#include "hmac.h"

static void begin(SHA2_CTX *context, const uint8_t key[HMAC_KEY_BYTES], uint8_t pad)
{
	uint8_t block[SHA256_BLOCK_LENGTH];

	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (uint8_t)((i < HMAC_KEY_BYTES ? key[i] : 0) ^ pad);
	SHA256Init(context);
	SHA256Update(context, block, sizeof block);
}

void hmac(const uint8_t key[HMAC_KEY_BYTES], const void *message, size_t length, uint8_t code[HMAC_BYTES])
{
	uint8_t inner[HMAC_BYTES];
	SHA2_CTX context;

	begin(&context, key, 0x36);
	SHA256Update(&context, message, length);
	SHA256Final(inner, &context);
	begin(&context, key, 0x5c);
	SHA256Update(&context, inner, sizeof inner);
	SHA256Final(code, &context);
}

bool hmac_is(const uint8_t key[HMAC_KEY_BYTES], const void *message, size_t length, const uint8_t code[HMAC_BYTES])
{
	uint8_t right[HMAC_BYTES], different = 0;

	hmac(key, message, length, right);
	for (size_t i = 0; i < sizeof right; i++)
		different |= (uint8_t)(right[i] ^ code[i]);
	return different == 0;
}
