/*
 * The datagrams between sentinels. A beat lists the epochs of slots that the sender claims, and an answer to it repeats them with
 * the verdict of the voter. Both carry the runs of sender and receiver and a code under the key of the two nodes. A tag, which these
 * derive from their key, comes first: the kernel can compare it before a datagram takes any room.
 * Pure functions: bytes in, frame out.
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hmac.h"

/* With CLAIMS_MAX a frame fits into one packet of any link. A sender with more claims sends more beats. */
enum { CLAIMS_MAX = 64, FRAME_BYTES = 40 + 17 * CLAIMS_MAX + HMAC_BYTES };

enum beat_type { BEAT = 1, ANSWER = 2 };

/*
 * UNKNOWN: the voter has no such vote, and its answer is none. REFUSED: it has stated silence, knows a later epoch, or the
 * operator has revoked this one.
 */
enum verdict { ANSWERED, UNKNOWN, REFUSED };

struct claim {
	uint64_t slot; /* see slot_number() */
	uint32_t epoch;
	uint32_t timeout_ms; /* by which the primary counts: a voter that waits for less cannot answer */
	enum verdict verdict; /* of an answer */
};

struct frame {
	enum beat_type type;
	uint64_t from, to; /* runs of the sentinels */
	/*
	 * In an answer, a number that each process of a voter draws; in a beat, the latest number of this voter. A beat with
	 * another number may be from before this process, and is no sign of life.
	 */
	uint64_t process;
	int64_t sent; /* when the beat was sent, by the monotonic clock of its sender: later beats have later times */
	size_t count;
	struct claim claims[CLAIMS_MAX];
};

/* Returns the length of the frame. */
size_t frame_write(const struct frame *frame, const uint8_t key[HMAC_KEY_BYTES], uint8_t bytes[FRAME_BYTES]);

/* Returns the first word of every frame under this key. */
uint32_t frame_tag(const uint8_t key[HMAC_KEY_BYTES]);

/* False if it is no frame, or not one of the owner of this key. */
bool frame_read(const uint8_t *bytes, size_t length, const uint8_t key[HMAC_KEY_BYTES], struct frame *frame);

/* Returns the beginning of the SHA-256 of a slot's name. */
uint64_t slot_number(const char *slot);

#endif
