/*
 * Runs the parser of requests under gcc's sanitizers.
 *
 *	harness fuzz CORPUS INPUTS SEED      parse mutations of the corpus; same arguments, same inputs
 *
 * Each line is parsed in a heap block of exactly its size plus one byte, so that the address sanitizer sees any access
 * beyond it. check() tests the invariants of the result.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_procs.h"
#include "line.h"
#include "message.h"
#include "number.h"

enum { SEEDS_MAX = 64, INPUT_MAX = 70000 };

struct input {
	char *bytes;
	size_t length;
};

static struct input corpus[SEEDS_MAX];
static size_t corpus_size;
static uint64_t state;
static unsigned long seen_without_id, seen_malformed, seen_parsed;

static uint64_t next_random(void)
{
	/* xorshift64*: short, and the same everywhere. */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

static size_t below(size_t limit)
{
	return limit == 0 ? 0 : (size_t)(next_random() % limit);
}

static void __attribute__((noreturn)) violated(const char *what, const struct input *input)
{
	fprintf(stderr, "violated: %s; input of %zu bytes:\n", what, input->length);
	fwrite(input->bytes, 1, input->length, stderr);
	exit(1);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_corpus(const char *directory)
{
	struct dirent **names;
	int count = scandir(directory, &names, NULL, by_name);

	for (int i = 0; i < count; i++) {
		char path[4096];
		FILE *file;

		snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && corpus_size < SEEDS_MAX && (file = fopen(path, "rb"))) {
			struct input *seed = &corpus[corpus_size++];

			seed->bytes = malloc(INPUT_MAX);
			seed->length = fread(seed->bytes, 1, INPUT_MAX, file);
			/* The newline is not part of a line. */
			if (seed->length && seed->bytes[seed->length - 1] == '\n')
				seed->length--;
			fclose(file);
		}
		free(names[i]);
	}
	if (count > 0)
		free(names);
	if (corpus_size == 0) {
		fprintf(stderr, "no seeds in %s\n", directory);
		exit(2);
	}
}

static void mutate_once(struct input *input)
{
	static const char interesting[] = "  ==%%:.-/\n\t\r\0\x7f\x80\xff" "09azAZfg+";
	size_t at = below(input->length + 1), run;
	const struct input *other;

	switch (below(7)) {
	case 0: /* a bit */
		if (at < input->length)
			input->bytes[at] = (char)(input->bytes[at] ^ (1 << below(8)));
		break;
	case 1: /* a byte that means something */
		if (at < input->length)
			input->bytes[at] = interesting[below(sizeof interesting - 1)];
		break;
	case 2: /* insert */
		if (input->length < INPUT_MAX) {
			memmove(input->bytes + at + 1, input->bytes + at, input->length - at);
			input->bytes[at] = interesting[below(sizeof interesting - 1)];
			input->length++;
		}
		break;
	case 3: /* delete */
		run = below(input->length - at + 1);
		run = run > 8 ? 8 : run;
		memmove(input->bytes + at, input->bytes + at + run, input->length - at - run);
		input->length -= run;
		break;
	case 4: /* cut */
		input->length = at;
		break;
	case 5: /* repeat */
		run = below(input->length - at + 1);
		if (input->length + run <= INPUT_MAX) {
			memmove(input->bytes + at + run, input->bytes + at, input->length - at);
			input->length += run;
		}
		break;
	default: /* a part of another one behind it */
		other = &corpus[below(corpus_size)];
		run = below(other->length + 1);
		if (input->length + run <= INPUT_MAX) {
			memcpy(input->bytes + input->length, other->bytes + other->length - run, run);
			input->length += run;
		}
	}
}

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
		if (cgroup_path_is_inside(value) && (value[0] == '/' || strstr(value, "/../") || strncmp(value, "../", 3) == 0 || strcmp(value, "..") == 0))
			violated("a path inside has no way out", input);
		free(encoded);
		free(line);
	}
}

static void check(const struct input *input)
{
	char *block = malloc(input->length + 1);
	struct request *request = malloc(sizeof *request);
	const char *wrong;

	memcpy(block, input->bytes, input->length);
	if (!line_parse(block, input->length, request)) {
		if (request->id)
			seen_malformed++;
		else
			seen_without_id++;
	} else {
		seen_parsed++;
		if (!request->id || !request->verb || request->count > LINE_FIELDS)
			violated("a request has an id, a verb and fields within their bound", input);
		if (input->length > LINE_BYTES || memchr(input->bytes, '\0', input->length))
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

static int fuzz(const char *directory, unsigned long inputs, uint64_t seed)
{
	static char bytes[INPUT_MAX];
	struct input input = { .bytes = bytes };

	state = seed * 2 + 1;
	load_corpus(directory);
	for (size_t i = 0; i < corpus_size; i++)
		check(&corpus[i]);
	for (unsigned long i = 0; i < inputs; i++) {
		const struct input *from = &corpus[below(corpus_size)];

		memcpy(bytes, from->bytes, from->length);
		input.length = from->length;
		for (size_t n = 1 + below(4); n > 0; n--)
			mutate_once(&input);
		check(&input);
	}
	printf("{\"inputs\":%lu,\"withoutId\":%lu,\"malformed\":%lu,\"parsed\":%lu}\n", inputs + corpus_size, seen_without_id,
	       seen_malformed, seen_parsed);
	for (size_t i = 0; i < corpus_size; i++)
		free(corpus[i].bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "fuzz") == 0)
		return fuzz(argv[2], strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	fputs("usage: harness fuzz CORPUS INPUTS SEED\n", stderr);
	return 2;
}
