/*
 * Mutates a corpus of inputs for a program's parsers. The same arguments give the same inputs.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MAX = 64 };

static struct input corpus[SEEDS_MAX];
static size_t corpus_size;
static uint64_t state;

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

void violated(const char *what, const struct input *input)
{
	fprintf(stderr, "violated: %s; input of %zu bytes:\n", what, input->length);
	fwrite(input->bytes, 1, input->length, stderr);
	exit(1);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_corpus(const char *directory, size_t room)
{
	struct dirent **names;
	int count = scandir(directory, &names, NULL, by_name);

	for (int i = 0; i < count; i++) {
		char path[4096];
		FILE *file;

		snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && corpus_size < SEEDS_MAX && (file = fopen(path, "rb"))) {
			struct input *seed = &corpus[corpus_size++];

			seed->bytes = malloc(room);
			seed->length = fread(seed->bytes, 1, room, file);
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

static void mutate_once(struct input *input, size_t room)
{
	static const char interesting[] = "  ==%%:.-/\n\t\r\0\x7f\x80\xff" "09azAZfFg+";
	size_t at = below(input->length + 1), run;
	const struct input *other;

	switch (below(7)) {
	case 0: /* a bit */
		if (at < input->length)
			input->bytes[at] = (char)(input->bytes[at] ^ (1 << below(8)));
		break;
	case 1: /* a byte that means something to some parser */
		if (at < input->length)
			input->bytes[at] = interesting[below(sizeof interesting - 1)];
		break;
	case 2: /* insert */
		if (input->length < room) {
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
		if (input->length + run <= room) {
			memmove(input->bytes + at + run, input->bytes + at, input->length - at);
			input->length += run;
		}
		break;
	default: /* append the end of another seed, or all of it: coalesced requests */
		other = &corpus[below(corpus_size)];
		run = below(other->length + 1);
		if (input->length + run <= room) {
			memcpy(input->bytes + input->length, other->bytes + other->length - run, run);
			input->length += run;
		}
	}
}

void fuzz(const char *directory, unsigned long inputs, uint64_t seed, size_t room, void (*check)(const struct input *input))
{
	struct input input = { .bytes = malloc(room) };

	state = seed * 2 + 1;
	load_corpus(directory, room);
	for (size_t i = 0; i < corpus_size; i++)
		check(&corpus[i]);
	for (unsigned long i = 0; i < inputs; i++) {
		const struct input *from = &corpus[below(corpus_size)];

		memcpy(input.bytes, from->bytes, from->length);
		input.length = from->length;
		for (size_t n = 1 + below(4); n > 0; n--)
			mutate_once(&input, room);
		check(&input);
	}
	for (size_t i = 0; i < corpus_size; i++)
		free(corpus[i].bytes);
	free(input.bytes);
}
