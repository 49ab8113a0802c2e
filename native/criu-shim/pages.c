/*
 * A lazy restore: the application runs while `criu lazy-pages` inserts its pages, beginning with pages that it touches.
 * Only that process has the userfaultfds open. When the last process that has them open ends, the kernel treats every
 * missing page as empty: the application would not hang but continue with zeros for memory. So a second process, the
 * guardian, keeps them open. It shares the table of open files with CRIU, including descriptors added later (one for
 * each child that the application forks). If CRIU ends before all pages have arrived, the application blocks at each
 * missing page that it touches, until the guardian kills it; that counts as any other death.
 *
 * UNDERSTUDY_PAGES=<ms> in the environment turns this on; it is the time limit for the pages. Files in the work
 * directory report the outcome: `arrived`, all pages are present; `lost`, they are not, and the guardian kills the
 * application, if the agent has named it (in `app`). Without `app` no process of it runs yet, and the agent checks the
 * outcome before a thaw.
 *
 * Both processes are outside of the application's pid namespace: they have no pid there, so it cannot signal them. Once
 * the server reads images, seccomp denies it all signals; before that CRIU tests the kernel on its own children.
 */
#include "work.h"

enum { SIG_KILL = 9, SIG_USR1 = 10, SIG_SET_BYTES = 8 };
enum { PROT_READ_WRITE = 3, MAP_SHARED_ANONYMOUS = 0x21, CLONE_SHARES_FILES = 0x400, SIG_BLOCKS = 0 };
enum { PDEATHSIG = 1, SET_NAME = 15 };
enum { LOOK_NS = 1000000, LOOKS = 60 * 1000, APP_MS = 20 };
enum { NR_pidfd_send_signal = 424, NR_pidfd_open = 434 };
enum { NO_NEW_PRIVS = 38, SET_SECCOMP = 22, FILTERED = 2 };
#if defined(__x86_64__)
enum { NR_tkill = 200, NR_tgkill = 234, NR_rt_sigqueueinfo = 129, NR_rt_tgsigqueueinfo = 297 };
#else
enum { NR_tkill = 130, NR_tgkill = 131, NR_rt_sigqueueinfo = 138, NR_rt_tgsigqueueinfo = 240 };
#endif

/* Shared by both processes. */
static volatile int *arrived;
static long server;

static void __attribute__((noreturn)) end(int code)
{
	for (;;)
		raw(NR_exit_group, code, 0, 0, 0, 0, 0);
}

/* CRIU exits with 0 when every page is in place, or no process is left that could need one. */
static void at_end(int status, void *unused)
{
	(void)unused;
	/* A child that CRIU has forked for a test exits here, too. */
	if (status != 0 || own_pid() != server)
		return;
	*arrived = 1;
	say("arrived");
}

/*
 * Call it while the application is frozen and cannot have ended: later another process may have its pid. Negative:
 * unknown.
 */
static long open_application(void)
{
	char text[16];
	long fd = raw(NR_openat, FD_WORK, (long)"app", O_CLOSE_ON_EXEC, 0, 0, 0), length, pid = 0;

	if (fd < 0)
		return fd;
	length = raw(NR_read, fd, (long)text, sizeof text, 0, 0, 0);
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		pid = pid * 10 + (text[i] - '0');
	return pid > 1 ? raw(NR_pidfd_open, pid, 0, 0, 0, 0, 0) : -E_SRCH;
}

/* The application is the init of a pid namespace: killing it kills all of it, and it ends last. */
static void end_application(long application)
{
	say("lost");
	if (application < 0)
		application = open_application();
	if (application < 0 || raw(NR_pidfd_send_signal, application, SIG_KILL, 0, 0, 0, 0))
		return;
	for (long looks = 0; looks < LOOKS && raw(NR_pidfd_send_signal, application, 0, 0, 0, 0, 0) != -E_SRCH; looks++)
		pause_for(LOOK_NS);
}

static void __attribute__((noreturn)) guard(long milliseconds)
{
	const unsigned long all = ~0UL, wake = 1UL << (SIG_USR1 - 1);
	long signal = 0, application = -E_NOENT;

	raw(NR_rt_sigprocmask, SIG_BLOCKS, (long)&all, 0, SIG_SET_BYTES, 0, 0);
	raw(NR_prctl, SET_NAME, (long)"pages", 0, 0, 0, 0);
	raw(NR_prctl, PDEATHSIG, SIG_USR1, 0, 0, 0, 0);
	/* The server may have ended before the prctl() that requests the signal. */
	if (raw(NR_getppid, 0, 0, 0, 0, 0, 0) == server)
		do {
			const long part = application < 0 && milliseconds > APP_MS ? APP_MS : milliseconds;
			const long time[2] = { part / 1000, part % 1000 * 1000000 };

			signal = raw(NR_rt_sigtimedwait, (long)&wake, 0, (long)time, SIG_SET_BYTES, 0, 0);
			if (application < 0)
				application = open_application();
			if (signal == -E_AGAIN)
				milliseconds -= part;
		} while (signal == -E_INTR || (signal == -E_AGAIN && milliseconds > 0));
	if (*arrived)
		end(0);
	end_application(application);
	if (raw(NR_getppid, 0, 0, 0, 0, 0, 0) == server)
		raw(NR_kill, server, SIG_KILL, 0, 0, 0, 0);
	end(1);
}

/* Denies signals with EPERM. `nsrun` has made sure that no second way to these calls exists. */
static int without_signals(void)
{
	static const unsigned numbers[] = { NR_kill,	       NR_tkill,		NR_tgkill,
					    NR_rt_sigqueueinfo, NR_rt_tgsigqueueinfo, NR_pidfd_send_signal };
	enum { COUNT = sizeof numbers / sizeof *numbers };
	struct instruction {
		unsigned short code;
		unsigned char yes, no;
		unsigned value;
	} filter[COUNT + 3] = { { .code = 0x20 /* load the number */ } };
	struct {
		unsigned short length;
		const struct instruction *filter;
	} program = { COUNT + 3, filter };

	for (unsigned char i = 0; i < COUNT; i++)
		filter[i + 1] = (struct instruction){ .code = 0x15 /* equal */, .yes = COUNT - i, .value = numbers[i] };
	filter[COUNT + 1] = (struct instruction){ .code = 6 /* return */, .value = 0x7fff0000 /* allow */ };
	filter[COUNT + 2] = (struct instruction){ .code = 6, .value = 0x00050000 | E_PERM /* error */ };
	return raw(NR_prctl, NO_NEW_PRIVS, 1, 0, 0, 0, 0) == 0 &&
	       raw(NR_prctl, SET_SECCOMP, FILTERED, (long)&program, 0, 0, 0) == 0;
}

void images_are_read(void)
{
	static int seen;

	if (!server || seen)
		return;
	seen = 1;
	if (!without_signals())
		end(125);
}

static long asked_for(char **environment)
{
	static const char name[] = "UNDERSTUDY_PAGES=";

	for (; environment && *environment; environment++) {
		const char *at = *environment;
		long value = 0;
		unsigned i = 0;

		while (name[i] && at[i] == name[i])
			i++;
		if (name[i])
			continue;
		for (at += i; *at >= '0' && *at <= '9'; at++)
			value = value * 10 + (*at - '0');
		return value;
	}
	return 0;
}

/* A constructor; the loader passes it these arguments. */
static void __attribute__((constructor)) begin(int count, char **arguments, char **environment)
{
	long milliseconds = asked_for(environment), memory, guardian;

	(void)count;
	(void)arguments;
	if (!milliseconds)
		return;
	server = own_pid();
	memory = raw(NR_mmap, 0, sizeof *arrived, PROT_READ_WRITE, MAP_SHARED_ANONYMOUS, -1, 0);
	/* A server must not run without a guardian. */
	if (!on_exit || (memory < 0 && memory > -4096))
		end(125);
	arrived = (volatile int *)memory;
	if (on_exit(at_end, (void *)0))
		end(125);
	guardian = raw(NR_clone, CLONE_SHARES_FILES, 0, 0, 0, 0, 0);
	if (guardian < 0)
		end(125);
	if (guardian == 0)
		guard(milliseconds);
}
