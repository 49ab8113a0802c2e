/*
 * RLIMIT_FSIZE (see UNDERSTUDY_ROOM in native/nsrun/nsrun.c) limits each file, and CRIU writes the pages of each
 * process to a file of its own. This code makes it a limit of their sum: each file may be as large as the room that the
 * others leave. Only the soft limit changes. The hard limit stays, or becomes 0 to end the dump.
 *
 * CRIU writes one file after the other, so only the last one has grown since the previous call. Files that were filled
 * before the stop (src/agent/criu/room.ts) count with their size from the beginning: they are numbered from 1 without
 * gaps.
 */
#include "calls.h"
#include "room.h"

enum { FILE_SIZE = 1, FROM_END = 2, NAME_BYTES = 32 };
/* Room that CRIU's other output has in any case: see leastRoom in src/agent/criu/criu.ts. */
enum { LEAST_BYTES = 64 * 1024 };
#if defined(__x86_64__)
enum { NR_lseek = 8 };
#else
enum { NR_lseek = 62 };
#endif

struct limit {
	unsigned long soft, hard;
};

static unsigned long room, total, last_size;
static char last[NAME_BYTES];
static int known;

static unsigned long size_of(int fd)
{
	long size = raw(NR_lseek, fd, 0, FROM_END, 0, 0, 0);

	raw(NR_lseek, fd, 0, 0, 0, 0, 0);
	return size < 0 ? 0 : (unsigned long)size;
}

/* Zero: the file does not exist. */
static int size_of_name(int directory, const char *name, unsigned long *size)
{
	long fd = raw(NR_openat, directory, (long)name, O_CLOSE_ON_EXEC, 0, 0, 0);

	if (fd < 0)
		return 0;
	*size = size_of((int)fd);
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	return 1;
}

static void count_what_is_there(int directory)
{
	char name[NAME_BYTES];
	unsigned long size;

	for (unsigned long number = 1;; number++) {
		append(append_number(append(name, "pages-"), number), ".img");
		if (!size_of_name(directory, name, &size))
			return;
		total += size;
	}
}

void room_for(int directory, const char *name, int fd)
{
	struct limit now;
	unsigned long size, others;
	char *to = last;

	if (raw(NR_prlimit64, 0, FILE_SIZE, 0, (long)&now, 0, 0) || now.hard == ~0UL)
		return;
	if (!known) {
		known = 1;
		room = now.hard;
		count_what_is_there(directory);
	} else if (last[0] && size_of_name(directory, last, &size) && size > last_size) {
		total += size - last_size;
	}
	last_size = size_of(fd);
	for (const char *from = name; *from && to < last + NAME_BYTES - 1; from++)
		*to++ = *from;
	*to = 0;
	others = total > last_size ? total - last_size : 0;
	now.soft = room > others + LEAST_BYTES ? room - others : LEAST_BYTES;
	if (now.soft > now.hard)
		now.soft = now.hard;
	raw(NR_prlimit64, 0, FILE_SIZE, (long)&now, 0, 0, 0);
}
