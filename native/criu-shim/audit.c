/*
 * CRIU gets a random share of the unwritten pages as written ones. The agent compares those with the dump before, and
 * trusts the tracker no more if one differs. Their list is the file `audited` in CRIU's work
 * directory: for each the pid, as in the images' names, and the address, both as 64-bit numbers.
 */
#include "audit.h"

#include "work.h"

/* One page in so many, on average; at most so many an answer. */
enum { SHARE = 256, BATCH = 512, PAGE = 4096 };
#if defined(__x86_64__)
enum { NR_getrandom = 318 };
#else
enum { NR_getrandom = 278 };
#endif

static unsigned long draw(void)
{
	static unsigned long state;

	if (!state && (raw(NR_getrandom, (long)&state, sizeof state, 0, 0, 0, 0) < 0 || !state))
		state = 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Zero: the list cannot be written. */
static int note(const unsigned long *entries, int count)
{
	static long fd = -1;
	const long bytes = count * 2 * (long)sizeof *entries;

	if (fd < 0)
		fd = raw(NR_openat, FD_WORK, (long)"audited", 01 | 0100 | 02000 | O_CLOSE_ON_EXEC, 0600, 0, 0);
	return !count || raw(NR_write, fd, (long)entries, bytes, 0, 0, 0) == bytes;
}

struct region audit_room[REGIONS];

long audit(struct region *regions, long count, long room, unsigned long task)
{
	static unsigned long left;
	unsigned long noted[2 * BATCH];
	int notes = 0;
	long made = 0;

	for (long i = 0; i < count; i++) {
		struct region rest = regions[i];

		while (!(rest.categories & SOFT_DIRTY) && made + 2 + count - i < room && notes < BATCH) {
			const unsigned long pages = (rest.end - rest.start) / PAGE;
			unsigned long page;

			if (!left)
				left = 1 + draw() % (2 * SHARE);
			if (left > pages) {
				left -= pages;
				break;
			}
			page = rest.start + (left - 1) * PAGE;
			left = 0;
			if (page > rest.start)
				audit_room[made++] = (struct region){ rest.start, page, rest.categories };
			audit_room[made++] = (struct region){ page, page + PAGE, rest.categories | SOFT_DIRTY };
			noted[2 * notes] = task;
			noted[2 * notes++ + 1] = page;
			rest.start = page + PAGE;
			if (rest.start == rest.end)
				break;
		}
		if (rest.start < rest.end)
			audit_room[made++] = rest;
	}
	for (long i = 0; i < made; i++)
		regions[i] = audit_room[i];
	return note(noted, notes) ? made : AUDIT_FAILED;
}
