#include "tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "uffd.h"

enum { PAGE = 4096 };

/* 1 or 0; -1: the kernel does not tell. */
static int is_registered(int pagemap, uint64_t start)
{
	struct region region = { 0 };
	struct scan scan = {
		.size = sizeof scan,
		.start = start,
		.end = start + PAGE,
		.vec = (uint64_t)(uintptr_t)&region,
		.vec_len = 1,
		.return_mask = IS_REGISTERED,
	};
	const int found = ioctl(pagemap, SCAN, &scan);

	return found < 0 ? -1 : found == 1 && (region.categories & IS_REGISTERED) != 0;
}

/* True if pages of a mapping are marked as unchanged. To look costs a tenth of what it costs to remove marks. */
static bool has_marks(int pagemap, uint64_t start, uint64_t end)
{
	struct region region = { 0 };
	struct scan scan = {
		.size = sizeof scan,
		.start = start,
		.end = end,
		.vec = (uint64_t)(uintptr_t)&region,
		.vec_len = 1,
		.max_pages = 1,
		.category_inverted = IS_WRITTEN,
		.category_mask = IS_WRITTEN,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_PRESENT,
	};

	return ioctl(pagemap, SCAN, &scan) != 0;
}

/*
 * A mapping that is not registered may nevertheless have pages that are marked as unchanged: mremap() unregisters a
 * mapping that it merges with a moved one, and leaves the marks. Writes do not remove them then. So each newly registered
 * mapping loses all marks, and each of its pages counts as written.
 *
 * NULL: registered, or not possible, as for a mapping with another userfaultfd; then all its pages count as written.
 */
static const char *add(int uffd, int pagemap, uint64_t start, uint64_t end)
{
	struct uffdio_register range = { .range = { start, end - start }, .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect unmark = { .range = { start, end - start } };

	if (ioctl(uffd, UFFDIO_REGISTER, &range) != 0)
		/* The process has run another program, or has ended. */
		return errno == ESRCH || errno == ENOMEM ? "replaced" : NULL;
	return !has_marks(pagemap, start, end) || ioctl(uffd, UFFDIO_WRITEPROTECT, &unmark) == 0 ? NULL : "marks";
}

/*
 * Private and anonymous. A private mapping of a file is not: the kernel marks pages there that it has dropped, and the
 * marks look like memory.
 */
static bool parse(const char *line, uint64_t *start, uint64_t *end)
{
	unsigned long from, to, inode;
	char rights[5];

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &from, &to, rights, &inode) != 4)
		return false;
	*start = from;
	*end = to;
	return rights[3] == 'p' && inode == 0 && !strstr(line, "[v");
}

const char *register_mappings(const struct held *held, int uffd)
{
	char path[32], line[512];
	const char *why = NULL;
	int pagemap, count = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)held->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%d/maps", (int)held->pid);
	maps = fopen(path, "re");
	if (pagemap < 0 || !maps)
		why = "gone";
	while (!why && fgets(line, sizeof line, maps)) {
		uint64_t start, end;
		int known;

		if (!strchr(line, '\n')) { /* the rest of a long path */
			int c;

			while ((c = fgetc(maps)) != EOF && c != '\n')
				;
		}
		if (!parse(line, &start, &end))
			continue;
		/* The other mappings count as written. */
		if (++count > MAPPINGS_MAX || monotonic_ns() > held->until)
			break;
		known = is_registered(pagemap, start);
		if (known < 0)
			why = "kernel";
		else if (!known)
			why = add(uffd, pagemap, start, end);
	}
	if (maps)
		fclose(maps);
	if (pagemap >= 0)
		close(pagemap);
	return why;
}
