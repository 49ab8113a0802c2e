/*
 * Starting CRIU takes longer than dumping a small application. To keep the stop as short as the dump, the agent starts
 * CRIU before the stop, and CRIU waits at a gate just before it first looks at the processes. Files in its work
 * directory, descriptor 202, tell that it is ready and that it may proceed.
 *
 * The gate is CRIU's call of alarm(), the first step of its function that seizes the processes. By then it has examined
 * the node and itself. CRIU's own hook, the action script at `pre-dump`, runs before that work, and costs two more
 * programs during the stop.
 *
 * The gate also waits until all processes to dump have stopped: a thread obeys SIGSTOP only when it gets a processor.
 * If CRIU seizes a process of which only some threads have stopped, now and then one of them neither stops nor counts
 * as stopped, and CRIU waits for it for ever (1 of 200 dumps on a busy machine). A process under another tracer does
 * not count as stopped either: the CRIU of a dead sentinel may not have detached yet.
 *
 * If the sentinel dies before the gate opens, CRIU exits; processes stopped after that belong to another dump.
 *
 * Long because the interposed calls share the state of one gate.
 */
#include "connections.h"
#include "control.h"
#include "sockets.h"

/* A pipe to the sentinel: see native/sentinel/supervisor.h. */
/* POLLERR: no process has the other end open any more. */
enum { NOBODY_READS = 8 };

enum { TIMER_SLACK = 29 };
enum { FAIR = 0, REAL_TIME = 1 };
enum { WAIT_NS = 50000, GO_WAITS = 60 * 20000 };
/*
 * Usually all processes have stopped when the gate opens, or a moment later. A process that has not may never stop: a
 * parent waits in vfork() as long as its child likes, a process for a device, a traced process for its tracer. The
 * application is stopped meanwhile. Checking thousands of processes also keeps one of the node's processors busy. So
 * after the first moment the check takes at most one part in eleven of a processor, at normal priority.
 */
enum { URGENT_NS = 5 * 1000 * 1000, LONG_WAIT_NS = 1000000, WAITS_A_ROUND = 10, STANDING_NS = 999 * 1000 * 1000 };
/* The maximum; with more processes the gate refuses the dump. */
#ifndef PIDS
#define PIDS 65536
#endif

/* The processes to dump: the first process of this pid namespace and its descendants. */
static int pids[PIDS];
static int count;
/* The process found running is under a tracer. */
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

/*
 * A zombie counts as stopped, and so does a thread that is gone. The state follows the last parenthesis: a name may
 * contain some.
 */
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

/* Reads in pieces: the list may exceed any buffer, and a number may span two pieces. */
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
				give_up("gate", "too many processes");
			if (child)
				pids[count++] = (int)child;
			child = 0;
		}
	raw(NR_close, fd, 0, 0, 0, 0, 0);
}

/* The layout of getdents64(). */
struct entry {
	unsigned long inode;
	long offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* True if all threads of a process have stopped; adds their children. */
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
			/* In this order: a stopped thread has no child that is missing from its list. */
			all = stands(pid, entry->name);
			if (all)
				add_children(pid, entry->name);
		}
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	return all;
}

/* Keeps its priority if the change is not permitted. */
static void schedule(int policy)
{
	const int priority = policy == REAL_TIME;

	raw(NR_sched_setscheduler, 0, policy, (long)&priority, 0, 0, 0);
}

/* @param urgent end of the realtime priority; 0: already over. */
static int all_stand(long *urgent)
{
	int all = 1;

	pids[0] = 1;
	count = 1;
	for (int i = 0; i < count && all; i++) {
		all = process_stands(pids[i]);
		if (*urgent && monotonic_ns() > *urgent) {
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
	} end = { .fd = FD_DONE };
	const long at_once[2] = { 0, 0 };

	return raw(NR_ppoll, (long)&end, 1, (long)at_once, 0, 0, 0) == 1 && (end.seen & NOBODY_READS);
}

static long dumper;

/*
 * The processes are as they were, and everything is written, so this reports the end of the work. The exit itself
 * becomes known much later: the kernel frees CRIU's memory first, and then each waiting parent wakes in turn.
 */
static void at_end(int status, void *unused)
{
	(void)unused;
	/* A child that CRIU has forked for a test exits here, too. */
	if (own_pid() != dumper)
		return;
	if (status != 0) {
		control_end();
		return;
	}
	raw(NR_write, FD_DONE, (long)"", 1, 0, 0, 0);
	/*
	 * The reader has no higher priority than this process. If it has to run on this processor, it would wait for
	 * the exit.
	 */
	raw(NR_sched_yield, 0, 0, 0, 0, 0, 0);
	if (sockets_were_asked())
		say("asked");
}

static void wait_until_all_stand(void)
{
	const long began = monotonic_ns(), end = began + STANDING_NS;
	long urgent = began + URGENT_NS;

	for (;;) {
		const long round = monotonic_ns();
		long waits;

		if (all_stand(&urgent))
			return;
		waits = WAITS_A_ROUND * (monotonic_ns() - round);
		if (is_orphan() || monotonic_ns() >= end)
			give_up("gate", traced ? "a process is being traced" : "not all processes stopped");
		if (waits < LONG_WAIT_NS)
			waits = LONG_WAIT_NS;
		if (waits >= end - monotonic_ns())
			waits = end - monotonic_ns();
		pause_for(urgent ? WAIT_NS : waits > 0 ? waits : 0);
	}
}

static void wait_for_go(void)
{
	/* Without this file the program did not ask for a gate. */
	if (!is_there("gate"))
		return;
	/* An application is about to be stopped for this dump, so it comes before the node's other work. */
	raw(NR_setpriority, 0, 0, -20, 0, 0, 0);
	/* Makes short waits exact: by default the kernel adds up to 50 us to each. */
	raw(NR_prctl, TIMER_SLACK, 1, 0, 0, 0, 0);
	sockets_prepare();
	connections_prepare();
	if (!control_prepare())
		give_up("gate", "cannot make a socket");
	/*
	 * Here and while it seizes processes CRIU mostly sleeps, and runs for some microseconds each time. Even with
	 * the best nice value it would wait after a sleep until the running process has had its turn, which takes
	 * milliseconds.
	 */
	schedule(REAL_TIME);
	if (!say("ready"))
		give_up("gate", "cannot say that it is ready");
	/* Every moment counts: when the file exists the pod is stopped. */
	for (long waits = 0; !is_there("go"); waits++) {
		if (waits > GO_WAITS || is_orphan())
			give_up("gate", "nobody opened the gate");
		pause_for(WAIT_NS);
	}
	wait_until_all_stand();
	passed = 1;
	sockets_ask();
	if (is_orphan())
		give_up("gate", "nobody waits for it");
	/*
	 * From here on CRIU changes the dumped processes for a while, and a kill would leave them changed. A process
	 * that is about to kill CRIU creates the same file first: one of the two comes too late.
	 */
	if (!say_first("begun"))
		give_up("gate", "cannot say that it has begun, or was told to end");
	/* Without on_exit() the sentinel notices the end later. */
	dumper = own_pid();
	if (on_exit)
		on_exit(at_end, (void *)0);
}

/* Replaces the C library's alarm(); CRIU calls it with 0 to cancel the alarm when it has seized all processes. */
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
