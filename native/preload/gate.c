/*
 * Starting CRIU takes longer than dumping a small application. So that the application stands still only for the dump,
 * CRIU is started before it is stopped and held at a gate: just before it looks at the processes for the first time it
 * says so and waits until it may. Both is said by files in its work directory, descriptor 202.
 *
 * The place of the gate is CRIU's call of alarm(), the first thing in its function that seizes the processes: all that it
 * finds out about the node, and about itself, lies before it. CRIU's own hook for such things, the action script at
 * `pre-dump`, comes before all that, and asks for two more programs within the stop.
 *
 * It also waits until everything that is to be dumped really stands: a thread that has been told to stop does so when it
 * gets its turn, and when CRIU seizes a process of which some threads have stopped and others not yet, now and then one
 * of them neither stops nor is stopped, and CRIU waits for it for ever (1 of 200 dumps on a busy machine). One that is in
 * another tracer's hands does not stand either: the CRIU of a sentinel that died may not have let go of it yet.
 *
 * A CRIU whose sentinel died before the gate goes home: whoever stands later does so for somebody else's dump.
 */
#include "connections.h"
#include "control.h"
#include "sockets.h"

/* A pipe of the sentinel's: see native/sentinel/supervisor.h. */
enum { DONE = 199 };
/* Of poll(): nobody has the other end open any more. */
enum { NOBODY_READS = 8 };

enum { TIMER_SLACK = 29 };
enum { FAIR = 0, REAL_TIME = 1 };
enum { WAIT_NS = 50000, GO_WAITS = 60 * 20000 };
/*
 * All stand when the gate is opened, or will in a moment; who does not then may never: a parent waits in vfork() for as long as
 * its child likes, a process for a device, one that is traced for its tracer. The application stands meanwhile. And to look at
 * all of thousands of processes takes a processor, which is the node's: after the first moment no more than one part of it
 * in eleven, behind what else has to run.
 */
enum { URGENT_NS = 5 * 1000 * 1000, LONG_WAIT_NS = 1000000, WAITS_A_ROUND = 10, STANDING_NS = 999 * 1000 * 1000 };
#if defined(__x86_64__)
enum { NR_clock_gettime = 228 };
#else
enum { NR_clock_gettime = 113 };
#endif
/* Beyond these a dump is refused. */
#ifndef PIDS
#define PIDS 65536
#endif

/* Before CRIU has changed anything: there is nothing to be undone. */
static void __attribute__((noreturn)) give_up(const char *why)
{
	char line[96];
	long length = append(append(append(line, "gate: "), why), "\n") - line;

	raw(NR_write, 2, (long)line, length, 0, 0, 0);
	for (;;)
		raw(NR_exit_group, 125, 0, 0, 0, 0, 0);
}

/* All below the first process of this pid namespace, which is what is dumped. */
static int pids[PIDS];
static int count;
/* Who was found not to stand is in a tracer's hands. */
static int traced;

static char *path_of(char *path, int pid, const char *rest)
{
	append(append_number(append(path, "/proc/"), (unsigned long)pid), rest);
	return path;
}

static void path_of_thread(char *path, int pid, const char *thread, const char *file)
{
	append(append(append(append_number(append(path, "/proc/"), (unsigned long)pid), "/task/"), thread), file);
}

/* A zombie stands as well, and so does what is gone. The state follows the last parenthesis: a name may have some. */
static int stands(int pid, const char *thread)
{
	char path[64], text[512], *at;
	long length;

	path_of_thread(path, pid, thread, "/stat");
	length = read_file(path, text, sizeof text - 1);
	if (length <= 0)
		return 1;
	for (at = text + length - 1; at > text && *at != ')'; at--)
		;
	if (*at != ')' || text + length - at < 3)
		return 1;
	traced = at[2] == 't';
	return at[2] == 'T' || at[2] == 'Z' || at[2] == 'X';
}

/* In pieces: a process may have more children than fit into any buffer, and a number may lie across two. */
static void add_children(int pid, const char *thread)
{
	char path[64], text[4096];
	long fd, length;
	unsigned child = 0;

	path_of_thread(path, pid, thread, "/children");
	fd = raw(NR_openat, CWD, (long)path, O_CLOSE_ON_EXEC, 0, 0, 0);
	if (fd < 0)
		return;
	while ((length = raw(NR_read, fd, (long)text, sizeof text, 0, 0, 0)) > 0)
		for (long i = 0; i < length; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				child = child * 10 + (unsigned)(text[i] - '0');
				continue;
			}
			if (child && count == PIDS)
				give_up("too many processes");
			if (child)
				pids[count++] = (int)child;
			child = 0;
		}
	raw(NR_close, fd, 0, 0, 0, 0, 0);
}

/* As getdents64 gives it. */
struct entry {
	unsigned long inode;
	long offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* Whether all threads of a process stand; their children are added. */
static int process_stands(int pid)
{
	char path[32], room[4096] __attribute__((aligned(8)));
	long fd = raw(NR_openat, CWD, (long)path_of(path, pid, "/task"), O_DIRECTORY_ONLY | O_CLOSE_ON_EXEC, 0, 0, 0);
	long length;
	int all = 1;

	if (fd < 0)
		return 1;
	while (all && (length = raw(NR_getdents64, fd, (long)room, sizeof room, 0, 0, 0)) > 0)
		for (long at = 0; all && at < length;) {
			const struct entry *entry = (const struct entry *)(const void *)(room + at);

			at += entry->length;
			if (entry->name[0] == '.')
				continue;
			/* In this order: whoever stands has no child that is not in its list yet. */
			all = stands(pid, entry->name);
			if (all)
				add_children(pid, entry->name);
		}
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	return all;
}

/* On the monotonic clock. */
static long now(void)
{
	long time[2] = { 0, 0 };

	raw(NR_clock_gettime, 1, (long)time, 0, 0, 0, 0);
	return time[0] * 1000000000 + time[1];
}

/* Where this is not allowed it stays as urgent as it is. */
static void schedule(int policy)
{
	const int priority = policy == REAL_TIME;

	raw(NR_sched_setscheduler, 0, policy, (long)&priority, 0, 0, 0);
}

/* @param urgent until when it is more urgent than others; 0: it is not. */
static int all_stand(long *urgent)
{
	int all = 1;

	pids[0] = 1;
	count = 1;
	for (int i = 0; i < count && all; i++) {
		all = process_stands(pids[i]);
		if (*urgent && now() > *urgent) {
			*urgent = 0;
			schedule(FAIR);
		}
	}
	return all;
}

static int passed;

int is_dumped(int pid)
{
	for (int i = 0; passed && i < count; i++)
		if (pids[i] == pid)
			return 1;
	return 0;
}

static int is_orphan(void)
{
	struct {
		int fd;
		short asked, seen;
	} end = { .fd = DONE };
	const long at_once[2] = { 0, 0 };

	return raw(NR_ppoll, (long)&end, 1, (long)at_once, 0, 0, 0) == 1 && (end.seen & NOBODY_READS);
}

static long dumper;

/*
 * The processes are as they were, and everything is written. That CRIU has ended is known much later: its memory has to be
 * taken down first, and then one after the other has to wake who only waited for the one below.
 */
static void at_end(int status, void *unused)
{
	(void)unused;
	/* A child that CRIU has forked to try something ends like this, too. */
	if (own_pid() != dumper)
		return;
	if (status != 0) {
		control_end();
		return;
	}
	raw(NR_write, DONE, (long)"", 1, 0, 0, 0);
	/* Whoever reads it is no more urgent than this, may have to run here, and would wait for all of the end. */
	raw(NR_sched_yield, 0, 0, 0, 0, 0, 0);
	if (sockets_were_asked())
		say("asked");
}

static void wait_until_all_stand(void)
{
	const long began = now(), end = began + STANDING_NS;
	long urgent = began + URGENT_NS;

	for (;;) {
		const long round = now();
		long waits;

		if (all_stand(&urgent))
			return;
		waits = WAITS_A_ROUND * (now() - round);
		if (is_orphan() || now() >= end)
			give_up(traced ? "a process is being traced" : "not all processes stopped");
		if (waits < LONG_WAIT_NS)
			waits = LONG_WAIT_NS;
		if (waits >= end - now())
			waits = end - now();
		pause_for(urgent ? WAIT_NS : waits > 0 ? waits : 0);
	}
}

static void wait_for_go(void)
{
	/* Only who asked for it by a file of this name opens the gate. */
	if (!is_there("gate"))
		return;
	/* An application is about to stand still for it: it comes before what else this node has to do. */
	raw(NR_setpriority, 0, 0, -20, 0, 0, 0);
	/* Its waits here are to last as long as they say: by default the kernel adds up to 50 us to each. */
	raw(NR_prctl, TIMER_SLACK, 1, 0, 0, 0, 0);
	sockets_prepare();
	connections_prepare();
	if (!control_prepare())
		give_up("cannot make a socket");
	/*
	 * Here and while it seizes it mostly sleeps, and runs for some microseconds each time. However nice, after a sleep it
	 * would wait until whoever runs by then has had its turn, which takes milliseconds.
	 */
	schedule(REAL_TIME);
	if (!say("ready"))
		give_up("cannot say that it is ready");
	/* Here every moment counts: the pod is stopped when the file is there. */
	for (long waits = 0; !is_there("go"); waits++) {
		if (waits > GO_WAITS || is_orphan())
			give_up("nobody opened the gate");
		pause_for(WAIT_NS);
	}
	wait_until_all_stand();
	passed = 1;
	sockets_ask();
	if (is_orphan())
		give_up("nobody waits for it");
	/*
	 * From here on CRIU changes what it dumps for a while, and a sudden end would leave it changed. Whoever is about to
	 * kill it says the same first: one of the two is too late.
	 */
	if (!say_first("begun"))
		give_up("cannot say that it has begun, or was told to end");
	/* What cannot be said is seen later. */
	dumper = own_pid();
	if (on_exit)
		on_exit(at_end, (void *)0);
}

/* Of the C library, as CRIU calls it: with 0 to take it back, when everybody is seized. */
unsigned alarm(unsigned seconds)
{
	static int seen, seizing;
	const long timer[4] = { 0, 0, (long)seconds, 0 };

	if (seconds && !seen) {
		seen = seizing = 1;
		wait_for_go();
	} else if (!seconds && seizing) {
		seizing = 0;
		schedule(FAIR);
	}
	raw(NR_setitimer, 0, (long)timer, 0, 0, 0, 0);
	return 0;
}
