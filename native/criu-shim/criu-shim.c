/*
 * Loaded into CRIU in front of the C library (ld.so --preload), with gate.c, pages.c, sockets.c, connections.c,
 * backlog.c, room.c, track.c and control.c. CRIU does five things that fail, or are harmful, in our environment:
 *
 * 1. It reads the limits of the dumped processes with prlimit64. Without CAP_SYS_RESOURCE, which even root lacks on
 * some machines, the kernel refuses that for processes of other users. This library answers a refused read from
 * /proc/PID/limits, which every user may read. A refused raise of its own hard limit becomes a raise up to the hard
 * limit.
 *
 * 2. It caches its knowledge of the kernel in /run/criu.kdat. In a container that may be a read-only file system, or
 * CRIU would leave a file that the application can see and forge. Here that name means a file in the bundle's
 * directory, which is open as descriptor 200: criu.kdat.<boot id>, so that CRIU never trusts it after a reboot into
 * another kernel. CRIU writes it only with UNDERSTUDY_KDAT=write in the environment. Otherwise a missing file ends
 * CRIU: its tests of the kernel run programs, and would find the container's.
 *
 * 3. It truncates the files for pages. The agent fills them before the stop, because memory that a tmpfs already has
 * costs half as much: see src/agent/criu/room.ts, which also cuts off the unused rest. Their total limit: see room.c.
 *
 * 4. The server of a lazy restore takes an interrupted wait for an error and exits, and the application dies with it.
 * The kernel interrupts the wait when a process is stopped, frozen or inspected by a debugger. Here the wait is
 * repeated. The server also keeps the processor from the application whose page it has just inserted; here it waits.
 *
 * 5. It speaks with its own code, and restored processes with each other, over sockets that every process of the pod
 * can reach, without checking the peer: see control.c, which wraps accept, bind, connect, sendmsg and futex waits.
 *
 * Everything else is unchanged. Uses no header of a C library, and no symbol but errno's; on_exit and clone if they
 * exist.
 *
 * Long because each of the five calls needs its reason beside its code.
 */

#include "connections.h"
#include "control.h"
#include "room.h"
#include "track.h"

enum { LIMITS = 16 };

extern char **environ;

static int same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* ---- limits ---- */

struct limit {
	unsigned long soft, hard;
};

static unsigned long number_at(const char *text)
{
	unsigned long value = 0;

	while (*text == ' ')
		text++;
	if (*text == 'u') /* "unlimited" */
		return ~0UL;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (unsigned long)(*text - '0');
	return value;
}

/*
 * CRIU reads one limit after another of a stopped process, so the text read for the first serves the others. NULL: the
 * file cannot be read.
 */
static const char *limits_text(pid_t pid, unsigned resource)
{
	static char text[4096];
	static pid_t last_pid;
	static unsigned last_resource;
	char path[48];
	long length;
	int known = pid == last_pid && resource > last_resource;

	last_pid = pid;
	last_resource = resource;
	if (known)
		return text;
	append(append_number(append(path, "/proc/"), (unsigned long)pid), "/limits");
	length = read_file(path, text, sizeof text - 1);
	if (length <= 0) {
		last_pid = 0;
		return (const char *)0;
	}
	text[length] = 0;
	return text;
}

/* After a heading the lines are in the order of the limits' numbers; columns have fixed widths of 25 and 20. */
static int limits_from_proc(pid_t pid, unsigned resource, struct limit *limit)
{
	const char *line = limits_text(pid, resource);

	if (!line)
		return 0;
	for (unsigned skip = 0; skip <= resource; skip++) {
		while (*line && *line != '\n')
			line++;
		if (*line)
			line++;
	}
	for (int column = 0; column < 47; column++)
		if (!line[column] || line[column] == '\n')
			return 0;
	limit->soft = number_at(line + 26);
	limit->hard = number_at(line + 47);
	return 1;
}

static long limits(pid_t pid, unsigned resource, const struct limit *wanted, struct limit *old)
{
	long answer = raw(NR_prlimit64, pid, resource, (long)wanted, (long)old, 0, 0);
	pid_t self = (pid_t)raw(NR_getpid, 0, 0, 0, 0, 0, 0);
	struct limit present;

	if (answer != -E_PERM || resource >= LIMITS)
		return answer;
	if (!limits_from_proc(pid ? pid : self, resource, &present))
		return answer;
	if (wanted) {
		struct limit possible = *wanted;

		if (pid && pid != self)
			return answer;
		if (possible.hard > present.hard)
			possible.hard = present.hard;
		if (possible.soft > possible.hard)
			possible.soft = possible.hard;
		answer = raw(NR_prlimit64, pid, resource, (long)&possible, 0, 0, 0);
		if (answer)
			return answer;
	}
	if (old)
		*old = present;
	return 0;
}

int prlimit64(pid_t pid, unsigned resource, const struct limit *wanted, struct limit *old)
{
	return (int)result(limits(pid, resource, wanted, old));
}

int prlimit(pid_t pid, unsigned resource, const struct limit *wanted, struct limit *old)
{
	return (int)result(limits(pid, resource, wanted, old));
}

/* CRIU makes some calls by number. */
long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long answer;

	if (number == NR_prlimit64)
		return result(limits((pid_t)a, (unsigned)b, (const struct limit *)c, (struct limit *)d));
	if (number == NR_futex && control_waits((const int *)a, b, c, &answer))
		return result(answer);
	return result(raw(number, a, b, c, d, e, f));
}

/* ---- the cache of kernel features ---- */

static const char kdat[] = "/run/criu.kdat";
static const char kdat_new[] = "/run/criu.kdat.tmp";
/* Open while CRIU writes the file, because it checks the file system. */
static int kdat_fd = -1;

static int may_write(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		if (same(*variable, "UNDERSTUDY_KDAT=write"))
			return 1;
	return 0;
}

enum which { OTHER, KDAT, KDAT_NEW };

static enum which which_file(const char *path)
{
	return path && same(path, kdat) ? KDAT : path && same(path, kdat_new) ? KDAT_NEW : OTHER;
}

/* A name relative to the bundle. Zero: the machine has no boot id. */
static int bundle_name(enum which file, char *name)
{
	char id[37];
	long length = read_file("/proc/sys/kernel/random/boot_id", id, 36);

	if (length != 36)
		return 0;
	id[36] = 0;
	name = append(append(name, "criu.kdat."), id);
	if (file == KDAT_NEW)
		append(name, ".tmp");
	return 1;
}

static long open_kdat(enum which file, int flags, unsigned mode)
{
	char name[64];
	long fd;

	if ((flags & 3) && !may_write())
		return -E_ACCES;
	if (!bundle_name(file, name))
		return -E_NOENT;
	fd = raw(NR_openat, FD_PROGRAMS, (long)name, flags | O_CLOSE_ON_EXEC, mode, 0, 0);
	if (fd < 0 && !may_write())
		give_up("criu-shim", "what CRIU knows of this kernel cannot be read");
	if (fd >= 0 && (flags & 3))
		kdat_fd = (int)fd;
	return fd;
}

static int open_any(const char *path, int flags, unsigned mode)
{
	enum which file = which_file(path);

	if (file != OTHER)
		return (int)result(open_kdat(file, flags, mode));
	return (int)result(raw(NR_openat, CWD, (long)path, flags, mode, 0, 0));
}

/* The mode is a variable argument; on these processors it is passed like a third argument. */
int open(const char *path, int flags, unsigned mode)
{
	return open_any(path, flags, mode);
}

int open64(const char *path, int flags, unsigned mode)
{
	return open_any(path, flags, mode);
}

/* pages-NUMBER.img */
static int is_for_pages(const char *path)
{
	const char *start = "pages-";

	while (*start)
		if (*path++ != *start++)
			return 0;
	if (*path < '0' || *path > '9')
		return 0;
	while (*path >= '0' && *path <= '9')
		path++;
	return same(path, ".img");
}

static int is_image(const char *path)
{
	const char *end = path;

	while (*end)
		end++;
	return end - path > 4 && same(end - 4, ".img");
}

int openat64(int directory, const char *path, int flags, unsigned mode)
{
	const int known = connections_open(path);
	const int is_pages = is_for_pages(path);
	long record;
	int fd;

	if (known >= 0)
		return known;
	if (track_opens(directory, path, flags, &record))
		return (int)result(record);
	if (is_image(path)) {
		images_are_read();
		track_image(path, flags);
	}
	if (is_pages)
		flags &= ~O_EMPTY;
	fd = (int)result(raw(NR_openat, directory, (long)path, flags, mode, 0, 0));
	if (fd >= 0 && is_pages && (flags & 3))
		room_for(directory, path, fd);
	return fd;
}

int openat(int directory, const char *path, int flags, unsigned mode)
{
	return openat64(directory, path, flags, mode);
}

int unlink(const char *path)
{
	enum which file = which_file(path);
	char name[64];

	if (file == OTHER)
		return (int)result(raw(NR_unlinkat, CWD, (long)path, 0, 0, 0, 0));
	/* CRIU rejects the file: it belongs to another CRIU. */
	if (!may_write())
		give_up("criu-shim", "what CRIU knows of this kernel cannot be used");
	if (!bundle_name(file, name))
		return (int)result(-E_NOENT);
	return (int)result(raw(NR_unlinkat, FD_PROGRAMS, (long)name, 0, 0, 0, 0));
}

int rename(const char *from, const char *to)
{
	char old[64], new[64];

	if (which_file(from) == OTHER)
		return (int)result(raw(NR_renameat2, CWD, (long)from, CWD, (long)to, 0, 0));
	kdat_fd = -1;
	if (!may_write() || !bundle_name(KDAT_NEW, old) || !bundle_name(KDAT, new))
		return (int)result(-E_ACCES);
	return (int)result(raw(NR_renameat2, FD_PROGRAMS, (long)old, FD_PROGRAMS, (long)new, 0, 0));
}

/* CRIU requires a tmpfs, so that the file is gone after a reboot; here the boot id in its name ensures that. */
int fstatfs64(int fd, void *status)
{
	long answer = connections_file_system(fd, status) ? 0 : raw(NR_fstatfs, fd, (long)status, 0, 0, 0, 0);

	if (answer == 0 && fd == kdat_fd && fd >= 0)
		*(long *)status = 0x01021994;
	return (int)result(answer);
}

int fstatfs(int fd, void *status)
{
	return fstatfs64(fd, status);
}

/* ---- waiting for page faults ---- */

enum { NEXT_FAULT_MS = 5 };

/* The rest of the time for which the server may wait for faults while it has pages to insert, ns. It would never end if faults came all the time. */
static long patience = 500 * 1000 * 1000;

/*
 * CRIU waits for ever or not at all, so the remaining time need not be computed. Once it has answered a fault, it asks without a wait for
 * the next one, and inserts other pages if there is none yet. On a busy machine the application got a processor only at the end of
 * CRIU's time slice then: 3 ms for each of about 300 pages that it touches before it answers. So CRIU waits for the next fault. Other events are rare.
 */
int epoll_wait(int epoll, void *events, int room, int milliseconds)
{
	static int answered;
	const int longer = milliseconds == 0 && answered && patience > 0;
	const long begun = longer ? monotonic_ns() : 0;
	long answer;

	do
		answer = raw(NR_epoll_pwait, epoll, (long)events, room, longer ? NEXT_FAULT_MS : milliseconds, 0, 8);
	while (answer == -E_INTR);
	if (longer)
		patience -= monotonic_ns() - begun;
	answered = answer > 0;
	return (int)result(answer);
}
