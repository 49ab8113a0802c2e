/*
 * CRIU's incremental dumps (--track-mem) ask the kernel which pages are soft-dirty. Many kernels have no such bit, and
 * CRIU offers no other way. The kernel can record the same by asynchronous write protection of mappings that are
 * registered with a userfaultfd: the tracker (native/tracker) registers them before the dump. This code translates:
 *
 * 1. PAGEMAP_SCAN with SOFT_DIRTY asks for WRITTEN instead. A page of a mapping that is not registered counts as written,
 * whatever its marks say: mremap() unregisters a mapping that it merges with a moved one, leaves the marks, and from then
 * on writes do not remove them.
 *
 * 2. Where CRIU clears the soft-dirty bits (it writes "4" to clear_refs, after it has saved a process that is still
 * stopped), this code protects the written pages again.
 *
 * 3. Where CRIU tests whether the kernel has soft-dirty bits, to keep that beside its other findings, the answer is yes:
 * it matters only with --track-mem, and the agent uses that only where the tracker works.
 *
 * Only with UNDERSTUDY_TRACK=1 in the environment; 3 only with UNDERSTUDY_KDAT=write.
 */
#include "track.h"

#include "audit.h"
#include "work.h"

/* The layout of PAGEMAP_SCAN. */
struct scan {
	unsigned long size, flags, start, end, walk_end, vec, vec_len, max_pages;
	unsigned long category_inverted, category_mask, category_anyof_mask, return_mask;
};

enum { SCAN = 0xc0606610, PROTECT = 1 };
enum { REGISTERED = 1, WRITTEN = 2, FILE_PAGE = 4, PRESENT = 8, SWAPPED = 16 };
enum { HITS = 2048 };
#define END_OF_USER_SPACE 0x7ffffffff000UL
/* EIO: CRIU ends the dump as after any failure. It takes EINVAL and EACCES for a kernel without soft-dirty bits, and aborts. */
enum { FAILED = 5 };
#if defined(__x86_64__)
enum { NR_ioctl = 16 };
#else
enum { NR_ioctl = 29 };
#endif

extern char **environ;

static int has_variable(const char *wanted)
{
	for (char **variable = environ; variable && *variable; variable++) {
		const char *a = *variable, *b = wanted;

		while (*a && *a == *b) {
			a++;
			b++;
		}
		if (*a == *b)
			return 1;
	}
	return 0;
}

static int is(const char *path, const char *name)
{
	while (*path && *path == *name) {
		path++;
		name++;
	}
	return *path == *name;
}

/* Opened by CRIU as clear_refs, and as the pagemap for its test of the kernel. */
static int refs = -1, tested = -1;
static unsigned long task;

int track_opens(int directory, const char *path, int flags, long *fd)
{
	const int tests = has_variable("UNDERSTUDY_KDAT=write");

	if (!tests && !has_variable("UNDERSTUDY_TRACK=1"))
		return 0;
	if (is(path, "clear_refs")) {
		*fd = refs = (int)raw(NR_openat, directory, (long)"pagemap", O_CLOSE_ON_EXEC, 0, 0, 0);
		if (*fd < 0)
			*fd = -FAILED;
		return 1;
	}
	if (tests && is(path, "pagemap")) {
		*fd = tested = (int)raw(NR_openat, directory, (long)path, flags, 0, 0, 0);
		return 1;
	}
	return 0;
}

static long hit_count;

/* pagemap-NUMBER.img, for writing: the pages that CRIU asks for next are those of this process. */
void track_image(const char *path, int flags)
{
	const char *start = "pagemap-";
	unsigned long number = 0;

	while (*start)
		if (*path++ != *start++)
			return;
	if (!(flags & 3) || *path < '0' || *path > '9')
		return;
	for (; *path >= '0' && *path <= '9'; path++)
		number = number * 10 + (unsigned long)(*path - '0');
	if (!is(path, ".img"))
		return;
	task = number;
	hit_count = 0;
}

/*
 * The written pages of the present process that have to be protected again. A page that is missing here counts as written
 * in the next dump, too.
 */
static struct {
	unsigned long start, end;
} hits[HITS];

static void hit(const struct region *region)
{
	if (hit_count > 0 && hits[hit_count - 1].end == region->start)
		hits[hit_count - 1].end = region->end;
	else if (hit_count < HITS) {
		hits[hit_count].start = region->start;
		hits[hit_count++].end = region->end;
	} else {
		/* One call for everything costs less than so many. */
		hits[0].start = 0;
		hits[0].end = END_OF_USER_SPACE;
		hit_count = 1;
	}
}

/* Returns the number of regions; `*all` tells whether all of them are registered. */
static long ask_kernel(int fd, const struct scan *wanted, struct scan *other, int files, int *all)
{
	const struct region *regions = (const struct region *)wanted->vec;
	long count;

	*other = *wanted;
	other->return_mask = (wanted->return_mask & ~(unsigned long)SOFT_DIRTY) | WRITTEN | REGISTERED;
	if (!files) {
		other->category_inverted &= ~(unsigned long)FILE_PAGE;
		other->category_mask &= ~(unsigned long)FILE_PAGE;
	}
	if (other->vec_len > REGIONS)
		other->vec_len = REGIONS;
	count = raw(NR_ioctl, fd, SCAN, (long)other, 0, 0, 0);
	*all = 1;
	for (long i = 0; i < count; i++)
		*all &= (regions[i].categories & REGISTERED) != 0;
	return count;
}

static long ask(int fd, struct scan *scan)
{
	struct region *regions = (struct region *)scan->vec;
	struct scan other;
	int all;
	/*
	 * Whether a page is a file's costs the kernel most of its time. The tracker registers no mapping with such pages, so
	 * the question is needed only for others.
	 */
	long count = ask_kernel(fd, scan, &other, 0, &all);

	if (count > 0 && !all)
		count = ask_kernel(fd, scan, &other, 1, &all);
	scan->walk_end = other.walk_end;
	for (long i = 0; i < count; i++) {
		const int registered = (regions[i].categories & REGISTERED) != 0;
		const int written = !registered || (regions[i].categories & WRITTEN);

		if (registered && written)
			hit(&regions[i]);
		regions[i].categories &= ~(unsigned long)(REGISTERED | WRITTEN);
		regions[i].categories |= written ? SOFT_DIRTY : 0;
	}
	count = count > 0 ? audit(regions, count, (long)other.vec_len, task) : count;
	return count == AUDIT_FAILED ? -FAILED : count;
}

/* Needs the list: without one the kernel would protect absent pages as well, and CRIU would take the marks for pages. */
static long protect(int fd)
{
	struct scan scan = {
		.size = sizeof scan,
		.flags = PROTECT,
		.vec = (unsigned long)audit_room,
		.vec_len = REGIONS,
		.category_mask = WRITTEN,
		.category_anyof_mask = PRESENT | SWAPPED,
		.return_mask = WRITTEN,
	};

	for (long i = 0; i < hit_count; i++)
		for (scan.start = hits[i].start, scan.end = hits[i].end; scan.start < scan.end;) {
			const long count = raw(NR_ioctl, fd, SCAN, (long)&scan, 0, 0, 0);

			if (count < 0 && count != -E_INTR)
				return -FAILED;
			if (count >= 0)
				scan.start = scan.walk_end;
		}
	hit_count = 0;
	return 0;
}

int ioctl(int fd, unsigned long request, long argument)
{
	struct scan *scan = (struct scan *)argument;

	if ((unsigned)request == (unsigned)SCAN && (scan->return_mask & SOFT_DIRTY) && has_variable("UNDERSTUDY_TRACK=1"))
		return (int)result(ask(fd, scan));
	return (int)result(raw(NR_ioctl, fd, (long)request, argument, 0, 0, 0));
}

long write(int fd, const void *bytes, size_t count)
{
	if (fd == refs && fd >= 0 && count && *(const char *)bytes == '4') {
		const long failed = protect(fd);

		refs = -1;
		return failed ? result(failed) : (long)count;
	}
	return result(raw(NR_write, fd, (long)bytes, (long)count, 0, 0, 0));
}

void track_reads(int fd, void *bytes, long got)
{
	if (fd == tested && fd >= 0 && got == 8) {
		*(unsigned long *)bytes |= 1UL << 55;
		tested = -1;
	}
}
