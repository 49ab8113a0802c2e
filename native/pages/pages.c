/*
 * Compares or copies pages of two files. It maps them, because to read them would copy all of their memory.
 *
 *   pages compare FIRST SECOND < RANGES > SAME
 *   pages copy FIRST SECOND < RANGES > COUNT
 *
 * FIRST and SECOND are descriptors of the files. A range is three numbers of 64 bits, little-endian: its offset in the one
 * file, its offset in the other, and its length in bytes, all multiples of 4096. SAME has a byte for each page of the ranges: 1 if both
 * files have the same there, else 0. A copy writes what the first file has over the second one, which may not be the same file. COUNT is the number of
 * pages that it has copied, of 64 bits. Exit codes: 0; 2 usage; 1 a failure, also for a range that is not in both files, with a line on standard error. A
 * file that becomes shorter meanwhile ends the program by a signal.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "number.h"
#include "usage.h"

enum { PAGE = 4096, VECTOR = 16, MOST_FD = 1 << 20, BLOCK = 1024, GROWTH = 1024, MOST_WORKERS = 4 };

typedef uint64_t vector __attribute__((vector_size(VECTOR)));

struct mapped {
	const unsigned char *bytes;
	uint64_t size;
};

struct range {
	uint64_t first, second, length;
};

struct work {
	bool copies;
	int to; /* of copies */
	struct mapped first, second;
	struct range *ranges;
	size_t count;
	uint64_t pages;
	unsigned char *same; /* of each page, if they are compared */
	unsigned workers;
};

struct worker {
	const struct work *work;
	unsigned index;
	int error; /* of its first copy that failed */
};

int usage(FILE *out, int code)
{
	fprintf(out, "usage: pages compare FIRST SECOND < RANGES > SAME\n       pages copy FIRST SECOND < RANGES > COUNT\n");
	return code;
}

static bool map(int64_t fd, struct mapped *file)
{
	struct stat about;

	if (fstat((int)fd, &about) < 0)
		return false;
	file->size = (uint64_t)about.st_size;
	if (file->size == 0)
		return true;
	file->bytes = mmap(NULL, file->size, PROT_READ, MAP_SHARED, (int)fd, 0);
	return file->bytes != MAP_FAILED;
}

static bool is_within(const struct mapped *file, uint64_t offset, uint64_t length)
{
	return offset % PAGE == 0 && length % PAGE == 0 && offset <= file->size && length <= file->size - offset;
}

/* memcmp() of musl compares byte by byte. */
static bool is_same(const void *one, const void *other)
{
	const vector *left = one, *right = other;
	vector different = { 0 };

	for (int i = 0; i < PAGE / VECTOR; i += 4)
		different |= (left[i] ^ right[i]) | (left[i + 1] ^ right[i + 1]) | (left[i + 2] ^ right[i + 2]) |
			     (left[i + 3] ^ right[i + 3]);
	return (different[0] | different[1]) == 0;
}

static bool add(struct work *work, struct range range)
{
	if (work->count % GROWTH == 0) {
		struct range *ranges = reallocarray(work->ranges, work->count + GROWTH, sizeof *ranges);

		if (!ranges)
			return false;
		work->ranges = ranges;
	}
	work->ranges[work->count++] = range;
	work->pages += range.length / PAGE;
	return true;
}

/* Writes, and does not map the other file: where its memory has no room, a write fails, and a mapping ends the program. */
static bool copy(int to, const unsigned char *bytes, uint64_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t done = pwrite(to, bytes, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		length -= (uint64_t)done;
		offset += (uint64_t)done;
	}
	return true;
}

/* Does its part of a block of pages: `page` is the number of the first one among all ranges. */
static bool do_block(const struct work *work, const struct range *range, uint64_t done, uint64_t length, uint64_t page)
{
	const unsigned char *one = work->first.bytes + range->first + done;
	const unsigned char *other = work->second.bytes + range->second + done;

	if (work->copies)
		return copy(work->to, one, length, range->second + done);
	for (uint64_t at = 0; at < length; at += PAGE)
		work->same[page++] = is_same(one + at, other + at);
	return true;
}

/* Each worker has every so many blocks of pages. */
static void *run(void *argument)
{
	struct worker *worker = argument;
	const struct work *work = worker->work;
	uint64_t page = 0;

	for (size_t i = 0; i < work->count && !worker->error; i++) {
		const struct range *range = &work->ranges[i];

		for (uint64_t done = 0, length; done < range->length && !worker->error; done += length, page += length / PAGE) {
			uint64_t block = (BLOCK - page % BLOCK) * PAGE;

			length = range->length - done < block ? range->length - done : block;
			if (page / BLOCK % work->workers == worker->index && !do_block(work, range, done, length, page))
				worker->error = errno ? errno : EIO;
		}
	}
	return NULL;
}

/* A worker that cannot be started is no failure: this thread does its part. Returns 0 or an error number. */
static int run_all(struct work *work)
{
	struct worker workers[MOST_WORKERS];
	pthread_t threads[MOST_WORKERS];
	bool started[MOST_WORKERS] = { false };
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	work->workers = processors > MOST_WORKERS ? MOST_WORKERS : processors > 1 ? (unsigned)processors : 1;
	for (unsigned i = 0; i < work->workers; i++) {
		workers[i] = (struct worker){ .work = work, .index = i };
		started[i] = i > 0 && pthread_create(&threads[i], NULL, run, &workers[i]) == 0;
	}
	for (unsigned i = 0; i < work->workers; i++)
		if (!started[i])
			run(&workers[i]);
	for (unsigned i = 0; i < work->workers; i++)
		if (started[i])
			pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < work->workers; i++)
		if (workers[i].error)
			return workers[i].error;
	return 0;
}

int main(int argc, char **argv)
{
	static struct work work;
	int64_t one, other;
	struct range range;
	bool told, compares = argc == 4 && strcmp(argv[1], "compare") == 0;

	work.copies = argc == 4 && strcmp(argv[1], "copy") == 0;
	if ((!compares && !work.copies) || !parse_number(argv[2], MOST_FD, &one) || !parse_number(argv[3], MOST_FD, &other))
		return usage(stderr, EXIT_USAGE);
	work.to = (int)other;
	if (!map(one, &work.first) || !map(other, &work.second))
		return failed("cannot map a file");
	for (size_t got; (got = fread(&range, 1, sizeof range, stdin)) > 0;) {
		if (got < sizeof range || !is_within(&work.first, range.first, range.length) ||
		    !is_within(&work.second, range.second, range.length)) {
			errno = EINVAL;
			return failed("a range");
		}
		if (!add(&work, range))
			return failed("ranges");
	}
	if (compares)
		work.same = calloc(work.pages + 1, 1);
	if (ferror(stdin) || (compares && !work.same))
		return failed("ranges");
	errno = run_all(&work);
	if (errno)
		return failed("a copy");
	told = compares ? fwrite(work.same, 1, work.pages, stdout) == work.pages : fwrite(&work.pages, sizeof work.pages, 1, stdout) == 1;
	if (!told || fflush(stdout) == EOF)
		return failed("standard output");
	return 0;
}
