#include "heartbeat.h"

#include <string.h>

enum { HEAD_BYTES = 40, CLAIM_BYTES = 17, VERSION = 1 };

static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
	return at + bytes;
}

static uint64_t take(const uint8_t **at, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | (*at)[i];
	*at += bytes;
	return value;
}

size_t frame_write(const struct frame *frame, const uint8_t key[HMAC_KEY_BYTES], uint8_t bytes[FRAME_BYTES])
{
	uint8_t *at = bytes;

	at = put(at, frame_tag(key), 4);
	at = put(at, VERSION, 1);
	at = put(at, frame->type, 1);
	at = put(at, frame->count, 2);
	at = put(at, frame->from, 8);
	at = put(at, frame->to, 8);
	at = put(at, frame->process, 8);
	at = put(at, (uint64_t)frame->sent, 8);
	for (size_t i = 0; i < frame->count; i++) {
		at = put(at, frame->claims[i].slot, 8);
		at = put(at, frame->claims[i].epoch, 4);
		at = put(at, frame->claims[i].timeout_ms, 4);
		at = put(at, frame->claims[i].verdict, 1);
	}
	hmac(key, bytes, (size_t)(at - bytes), at);
	return (size_t)(at - bytes) + HMAC_BYTES;
}

/* The code of no frame: those are longer. */
uint32_t frame_tag(const uint8_t key[HMAC_KEY_BYTES])
{
	static const char about[] = "tag";
	uint8_t code[HMAC_BYTES];
	const uint8_t *at = code;

	hmac(key, about, sizeof about - 1, code);
	return (uint32_t)take(&at, 4);
}

bool frame_read(const uint8_t *bytes, size_t length, const uint8_t key[HMAC_KEY_BYTES], struct frame *frame)
{
	const uint8_t *at = bytes + 5;

	if (length < HEAD_BYTES + HMAC_BYTES || bytes[4] != VERSION ||
	    !hmac_is(key, bytes, length - HMAC_BYTES, bytes + length - HMAC_BYTES))
		return false;
	frame->type = (enum beat_type)take(&at, 1);
	frame->count = (size_t)take(&at, 2);
	if ((frame->type != BEAT && frame->type != ANSWER) || frame->count > CLAIMS_MAX ||
	    length != HEAD_BYTES + frame->count * CLAIM_BYTES + HMAC_BYTES)
		return false;
	frame->from = take(&at, 8);
	frame->to = take(&at, 8);
	frame->process = take(&at, 8);
	frame->sent = (int64_t)take(&at, 8);
	for (size_t i = 0; i < frame->count; i++) {
		frame->claims[i].slot = take(&at, 8);
		frame->claims[i].epoch = (uint32_t)take(&at, 4);
		frame->claims[i].timeout_ms = (uint32_t)take(&at, 4);
		frame->claims[i].verdict = (enum verdict)take(&at, 1);
		if (frame->claims[i].verdict > REFUSED)
			return false;
	}
	return true;
}

uint64_t slot_number(const char *slot)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	const uint8_t *at = digest;
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, (const uint8_t *)slot, strlen(slot));
	SHA256Final(digest, &context);
	return take(&at, 8);
}
