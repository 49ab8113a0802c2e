#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct input {
	char *bytes;
	size_t length;
};

/*
 * Calls `check` with each file of the directory, then with `inputs` mutations of them, of at most `room` bytes. The same
 * arguments give the same inputs.
 */
void fuzz(const char *directory, unsigned long inputs, uint64_t seed, size_t room, void (*check)(const struct input *input));

/* Ends the program because the result for this input breaks an invariant. */
void __attribute__((noreturn)) violated(const char *what, const struct input *input);

#endif
