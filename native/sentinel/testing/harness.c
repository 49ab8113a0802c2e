/*
 * Long because it is one program, so that one build serves all tests.
 *
 * Runs parts of the sentinel under gcc's sanitizers.
 *
 *	harness fuzz CORPUS INPUTS SEED      parse mutations of the corpus; same arguments, same inputs
 *	harness frames INPUTS SEED           read random bytes with a right code as datagrams
 *	harness serves                       until when a primary serves: on each line of the standard input
 *	                                     TIMEOUT VOTERS TIME... SETS [COUNT VOTER...]..., in ns; `-` is no answer
 *	harness haste                        the policy of scheduling before, during and after work in haste
 *	harness tables MS                    one transaction of nftables that takes the kernel so long; prints `begins` and `ended`
 *
 * Each line is parsed in a heap block of exactly its size plus one byte, so that the address sanitizer sees any access
 * beyond it. check() tests the invariants of the result.
 */
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_procs.h"
#include "clock.h"
#include "expressions.h"
#include "fuzz.h"
#include "haste.h"
#include "heartbeat.h"
#include "line.h"
#include "message.h"
#include "netlink.h"
#include "number.h"
#include "quorum.h"

enum { INPUT_MAX = 70000 };

static unsigned long seen_without_id, seen_malformed, seen_parsed;

static void check_values(const struct request *request, const struct input *input)
{
	for (size_t i = 0; i < request->count; i++) {
		const char *value = request->fields[i].value;
		size_t room = 3 * strlen(value) + 1;
		char *encoded = malloc(room), *line = malloc(room + 16);
		struct request again;
		size_t length;
		int64_t number;

		if (!value_encode(value, encoded, room))
			violated("a value fits into three times its length", input);
		if (encoded[0] && value_encode(value, encoded, strlen(encoded)))
			violated("what does not fit is not written", input);
		value_encode(value, encoded, room);
		length = (size_t)snprintf(line, room + 16, "1 a k=%s", encoded);
		if (length <= LINE_BYTES && (!line_parse(line, length, &again) || again.count != 1 || strcmp(again.fields[0].value, value) != 0))
			violated("a value that is encoded and decoded is the same", input);
		if (parse_number(value, 4194304, &number) && (number < 0 || number > 4194304))
			violated("a number is within its bounds", input);
		if (parse_number(value, 5, &number) && number > 5)
			violated("a digit is within its bound", input);
		if (cgroup_path_is_inside(value) && (value[0] == '/' || strstr(value, "/../") || strncmp(value, "../", 3) == 0 || strcmp(value, "..") == 0))
			violated("a path inside has no way out", input);
		free(encoded);
		free(line);
	}
}

static void check(const struct input *input)
{
	size_t length = input->length;
	struct request *request = malloc(sizeof *request);
	const char *wrong;
	char *block;

	/* The newline at the end is not part of a line. */
	if (length && input->bytes[length - 1] == '\n')
		length--;
	block = malloc(length + 1);
	memcpy(block, input->bytes, length);
	if (!line_parse(block, length, request)) {
		if (request->id)
			seen_malformed++;
		else
			seen_without_id++;
	} else {
		seen_parsed++;
		if (!request->id || !request->verb || request->count > LINE_FIELDS)
			violated("a request has an id, a verb and fields within their bound", input);
		if (length > LINE_BYTES || memchr(input->bytes, '\0', length))
			violated("too long a line, and one with a NUL, is malformed", input);
		if (strlen(request->id) > ID_DIGITS || strlen(request->verb) > WORD_BYTES)
			violated("an id and a verb are within their bounds", input);
		wrong = request_check(request, "name! pid? cgroup+ exclude* fd#*");
		if (wrong && strlen(wrong) > WORD_BYTES + 16)
			violated("what is wrong is a short word", input);
		if (!wrong && (!request_value(request, "name") || !request_value(request, "cgroup")))
			violated("what must be there is there", input);
		check_values(request, input);
	}
	free(request);
	free(block);
}

static int fuzz_all(const char *directory, unsigned long inputs, uint64_t seed)
{
	fuzz(directory, inputs, seed, INPUT_MAX, check);
	printf("{\"withoutId\":%lu,\"malformed\":%lu,\"parsed\":%lu}\n", seen_without_id, seen_malformed, seen_parsed);
	return 0;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int frames(unsigned long inputs, uint64_t seed)
{
	const uint8_t key[HMAC_KEY_BYTES] = { 1, 2, 3 };
	unsigned long read = 0;
	uint64_t state = seed;

	for (unsigned long i = 0; i < inputs; i++) {
		size_t claims = next_random(&state) % (CLAIMS_MAX + 2), length = 40 + 17 * claims + HMAC_BYTES;
		struct frame frame;
		uint8_t *bytes, again[FRAME_BYTES];
		bool well;

		if (next_random(&state) % 4 == 0)
			length = HMAC_BYTES + next_random(&state) % 1000;
		bytes = malloc(length);
		for (size_t at = 0; at < length; at++)
			bytes[at] = (uint8_t)next_random(&state);
		if (length >= 8) {
			uint32_t tag = htonl(frame_tag(key));

			memcpy(bytes, &tag, sizeof tag);
			memcpy(bytes + 4, (const uint8_t[]){ 1, (uint8_t)(1 + next_random(&state) % 3) }, 2);
			bytes[6] = 0;
			bytes[7] = (uint8_t)claims;
			for (size_t claim = 0; i % 8 && claim < claims && 40 + 17 * (claim + 1) <= length; claim++)
				bytes[40 + 17 * claim + 16] %= 3;
		}
		hmac(key, bytes, length - HMAC_BYTES, bytes + length - HMAC_BYTES);
		well = frame_read(bytes, length, key, &frame);
		if (well) {
			read++;
			if (frame.count > CLAIMS_MAX || frame_write(&frame, key, again) != length || memcmp(bytes, again, length) != 0)
				return fprintf(stderr, "a frame that is read and written is the same\n"), 1;
		}
		bytes[next_random(&state) % length] ^= 1;
		if (frame_read(bytes, length, key, &frame))
			return fprintf(stderr, "a changed frame is refused\n"), 1;
		free(bytes);
	}
	printf("%lu\n", read);
	return 0;
}

static int64_t read_number(void)
{
	char word[32] = "";

	return scanf("%31s", word) != 1 ? -1 : strcmp(word, "-") == 0 ? never_ns : strtoll(word, NULL, 10);
}

static int serves(void)
{
	int64_t timeout;

	while ((timeout = read_number()) >= 0) {
		int64_t sent[VOTERS_MAX], until;
		struct voters sets[2];
		size_t voters = (size_t)read_number(), count;

		for (size_t i = 0; i < voters; i++)
			sent[i] = read_number();
		count = (size_t)read_number();
		for (size_t set = 0; set < count; set++) {
			sets[set].count = (size_t)read_number();
			for (size_t i = 0; i < sets[set].count; i++)
				sets[set].list[i] = (uint8_t)read_number();
		}
		until = serves_until(sets, count, sent, timeout);
		if (until == never_ns)
			puts("-");
		else
			printf("%lld\n", (long long)until);
	}
	return 0;
}

/* A container with NET_ADMIN may do this in its pod. The namespace's other transactions wait for this one. */
/** Milliseconds that this process has spent in the kernel. */
static long kernel_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000;
}

/** A table whose only set has so many elements. */
static int fill_table(int netlink, uint32_t count, const char *announcement)
{
	enum { ELEMENT_BYTES = 64, IN_A_MESSAGE = 1000 };
	int room = (int)(count * ELEMENT_BYTES) + 4096, error;
	uint8_t *bytes = malloc((size_t)room);
	struct batch batch;
	size_t list = 0;

	setsockopt(netlink, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
	batch_begin(&batch, bytes, (size_t)room);
	batch.family = NFPROTO_INET;
	table_replace(&batch, "busy");
	batch_message(&batch, NFT_MSG_NEWSET, BATCH_CREATE);
	put_text(&batch, NFTA_SET_TABLE, "busy");
	put_text(&batch, NFTA_SET_NAME, "many");
	put_u32(&batch, NFTA_SET_KEY_TYPE, 7);
	put_u32(&batch, NFTA_SET_KEY_LEN, sizeof count);
	put_u32(&batch, NFTA_SET_ID, 1);
	for (uint32_t i = 0; i < count; i++) {
		size_t element;

		if (i % IN_A_MESSAGE == 0) {
			bool last = count - i <= IN_A_MESSAGE;

			elements_message(&batch, "busy", "many", NFT_MSG_NEWSETELEM, BATCH_CREATE | (last ? BATCH_ACK : 0));
			list = nest(&batch, NFTA_SET_ELEM_LIST_ELEMENTS);
		}
		element = nest(&batch, NFTA_LIST_ELEM);
		put_data(&batch, NFTA_SET_ELEM_KEY, &i, sizeof i);
		unnest(&batch, element);
		if (i % IN_A_MESSAGE == IN_A_MESSAGE - 1 || i == count - 1)
			unnest(&batch, list);
	}
	batch_end(&batch);
	printf("%s", announcement);
	fflush(stdout);
	error = batch_commit(netlink, &batch);
	free(bytes);
	return error;
}

static int tables(long ms)
{
	enum { SAMPLE = 50000 };
	int netlink = netlink_open(NETLINK_NETFILTER), error;
	long before = kernel_ms(), took;

	error = fill_table(netlink, SAMPLE, "");
	took = kernel_ms() - before;
	if (!error)
		error = fill_table(netlink, (uint32_t)(SAMPLE * ms / (took > 0 ? took : 1)), "begins\n");
	puts(error ? strerror(error) : "ended");
	fflush(stdout);
	return error != 0;
}

static int policy(void)
{
	/* Without the flag SCHED_RESET_ON_FORK. */
	return (int)syscall(SYS_sched_getscheduler, 0) & 0xff;
}

static void work_in_haste(struct haste *haste, int64_t ms, bool checks)
{
	int64_t until = monotonic_ns() + ms * NS_PER_MS;

	haste_wait(haste);
	printf("%d", policy());
	haste_begin(haste);
	printf(" %d", policy());
	while (monotonic_ns() < until)
		if (checks)
			haste_check(haste);
	printf(" %d", policy());
	haste_end(haste);
	printf(" %d\n", policy());
}

static int in_haste(void)
{
	const struct timespec later = { .tv_sec = 1, .tv_nsec = 400 * NS_PER_MS };
	struct haste haste = { 0 };

	work_in_haste(&haste, 1, true);
	work_in_haste(&haste, 20, true);
	/* As in one long call of the kernel. */
	work_in_haste(&haste, 60, false);
	work_in_haste(&haste, 1, true);
	nanosleep(&later, NULL);
	work_in_haste(&haste, 1, true);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "haste") == 0)
		return in_haste();
	if (argc == 3 && strcmp(argv[1], "tables") == 0)
		return tables(strtol(argv[2], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "frames") == 0)
		return frames(strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	if (argc == 2 && strcmp(argv[1], "serves") == 0)
		return serves();
	if (argc == 5 && strcmp(argv[1], "fuzz") == 0)
		return fuzz_all(argv[2], strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	fputs("usage: harness fuzz CORPUS INPUTS SEED | frames INPUTS SEED | serves | haste | tables MS\n", stderr);
	return 2;
}
