/*
 * Runs a program inside the namespaces of another process.
 *
 *   enter PID[:START] keep|clone|apart|host [--] PROGRAM ARGUMENT...
 *
 * keep   all of mount, uts, ipc, net, pid and cgroup namespaces.
 * clone  the same, with a private copy of the mount namespace: what is mounted later in the target's own arrives in the
 *        copy, never the other way round for /proc (see overlay_proc).
 * apart  as clone, but for the pid namespace, and so with a /proc of its own: the container has no number for the program.
 * host   as keep, for programs that outlive whoever started them: nothing ends them.
 *
 * UNDERSTUDY_FOR=dump|restore|pages|files in the environment: with the rights that this takes and no others, see rights.c.
 *
 * UNDERSTUDY_ROOM=BYTES: no file gets larger; the program does not see that either, and a write beyond it fails (EFBIG).
 *
 * START, the start time of the process as field 22 of /proc/PID/stat, guards against a pid that somebody else has now.
 * Files that are open stay open; programs and files are named through them (/proc/self/fd/N), so nothing of ours needs
 * to be in the target's file system. "@KEEPER@" in an argument is the pid, as the program sees it, of a process that has
 * the same files open for as long as the program runs: for children of a program that closes its own.
 *
 * SIGTERM kills the program and all that it has started, and reaps it there: better than SIGKILL to all of it at once,
 * which leaves zombies to the container's first process. A CRIU that is dumping is not killed: it may have put foreign
 * code into a process and not yet taken it out. With UNDERSTUDY_ROOM it can write nothing more, and so it fails; without
 * that it ends soon by itself. Whoever has no time for that sends SIGKILL.
 *
 * Started by CRIU as its action script it lays a fresh /proc over the restored tree's, see proc.c.
 *
 * Exit codes: the program's; 128 + the signal that ended it; 127 and 126 when it cannot be found or started; 125 when
 * anything else fails. Every failure is a line on standard error.
 */
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static const char keeper_mark[] = "@KEEPER@", room_variable[] = "UNDERSTUDY_ROOM";

static int usage(void)
{
	fputs("usage: enter PID[:START] keep|clone|apart|host [--] PROGRAM ARGUMENT...\n", stderr);
	return EXIT_OWN;
}

/* Strictly digits; false for anything else. */
static bool parse_number(const char *text, const char *end, unsigned long long *number)
{
	if (text == end)
		return false;
	for (*number = 0; text < end; text++) {
		if (*text < '0' || *text > '9' || *number > 100000000000000000ULL)
			return false;
		*number = *number * 10 + (unsigned long long)(*text - '0');
	}
	return true;
}

/* Field 22; the second may hold anything, parentheses and spaces included, so count from the last parenthesis. */
static int start_time(pid_t pid, unsigned long long *start)
{
	char path[32], text[2048], *at;
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return fail("process %d is gone", (int)pid);
	length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return fail("process %d is gone", (int)pid);
	*start = strtoull(at + 1, NULL, 10);
	return 0;
}

static int same_user_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	if (stat("/proc/self/ns/user", &ours) || stat(path, &theirs))
		return fail("%s: %s", path, strerror(errno));
	if (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev)
		return fail("process %d has a user namespace of its own, which is not supported", (int)pid);
	return 0;
}

/* What is run, and what it reads, is named by it. */
static int proc_is_proc(void)
{
	struct statfs status;

	if (statfs("/proc", &status))
		return fail("/proc: %s", strerror(errno));
	if (status.f_type != PROC_SUPER_MAGIC)
		return fail("/proc is something else there");
	return 0;
}

/*
 * In our copy of the mounts alone. It shows nothing but what we might trace, and nothing of it can be written: it is the
 * /proc of the node, and files like sys/kernel/core_pattern ask root for no capability.
 */
static int lay_own_proc(void)
{
	if (mount(NULL, "/proc", NULL, MS_REC | MS_SLAVE, NULL))
		return fail("/proc: %s", strerror(errno));
	if (mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=ptraceable"))
		return fail("mount /proc: %s", strerror(errno));
	return 0;
}

static int join(const char *target, bool clone, bool apart, struct rights *rights)
{
	const int all = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP | (apart ? 0 : CLONE_NEWPID);
	const char *colon = strchrnul(target, ':');
	unsigned long long pid, wanted = 0, start;
	int pidfd;

	if (!parse_number(target, colon, &pid) || pid == 0 || pid > 0x7fffffff)
		return usage();
	if (*colon && !parse_number(colon + 1, strchr(target, 0), &wanted))
		return usage();
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0)
		return fail("process %llu: %s", pid, strerror(errno));
	/* The pidfd is of whoever has the pid now: only then can the start time say who that is. */
	if (*colon) {
		if (start_time((pid_t)pid, &start))
			return EXIT_OWN;
		if (start != wanted)
			return fail("process %llu is gone: it started at %llu, not %llu", pid, start, wanted);
	}
	if (same_user_namespace((pid_t)pid) || rights_of_purpose((pid_t)pid, rights))
		return EXIT_OWN;
	/* While they are of our own mount namespace: those of others cannot be copied. */
	if ((clone || rights->secluded) && seclude_directories(!rights->copies_directory))
		return EXIT_OWN;
	if (setns(pidfd, all))
		return fail("join the namespaces of process %llu: %s", pid, strerror(errno));
	close(pidfd);
	if (clone && unshare(CLONE_NEWNS))
		return fail("copy the mount namespace of process %llu: %s", pid, strerror(errno));
	if (apart && lay_own_proc())
		return EXIT_OWN;
	if (chdir("/"))
		return fail("/: %s", strerror(errno));
	return proc_is_proc();
}

/* Every mark in every argument. */
static int name_keeper(char **arguments, pid_t keeper)
{
	for (; *arguments; arguments++) {
		char *mark;

		while ((mark = strstr(*arguments, keeper_mark))) {
			char *named;

			if (asprintf(&named, "%.*s%d%s", (int)(mark - *arguments), *arguments, (int)keeper,
				     mark + sizeof keeper_mark - 1) < 0)
				return fail("out of memory");
			*arguments = named;
		}
	}
	return 0;
}

/* What asks for it must not end by the signal: a CRIU would leave its code in the processes that it dumps. */
static int limit_files(void)
{
	const char *text = getenv(room_variable);
	unsigned long long bytes;
	struct rlimit limit;

	if (!text)
		return 0;
	if (!parse_number(text, strchr(text, 0), &bytes))
		return fail("%s=%s is no number", room_variable, text);
	limit = (struct rlimit){ .rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes };
	unsetenv(room_variable);
	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &limit) ? fail("RLIMIT_FSIZE: %s", strerror(errno)) : 0;
}

/* What crashes here has a container's memory in its own. What is restored has the limit of its images. */
static int no_cores(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit))
		return fail("RLIMIT_CORE: %s", strerror(errno));
	limit.rlim_cur = 0;
	return setrlimit(RLIMIT_CORE, &limit) ? fail("RLIMIT_CORE: %s", strerror(errno)) : 0;
}

static int start(char **command)
{
	if (limit_files() || no_cores())
		return EXIT_OWN;
	/* Whoever has started us comes before others; what is run does not, unless it says so itself. */
	setpriority(PRIO_PROCESS, 0, 0);
	execv(command[0], command);
	fail("%s: %s", command[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fail("wait: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the child: whoever kills the parent, by SIGKILL even, must not leave a CRIU behind that nobody waits for. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Zero: it is outside our pid namespace, and not to be compared. */
	if (parent != 0 && getppid() != parent)
		_exit(EXIT_OWN);
}

enum { WORK = 202 };

/* By UNDERSTUDY_ROOM. */
static bool is_limited;
/* Whom a SIGTERM is for: our child. 0: none yet, and then it is remembered. */
static volatile sig_atomic_t passed_to;
static volatile sig_atomic_t passed_as;
static volatile sig_atomic_t told_to_end;

/*
 * Whether a CRIU has gone through its gate (preload/gate.c); false for anything else. One that has not cannot any more:
 * only one of the two makes the file. Safe in a handler.
 */
static bool dump_has_begun(void)
{
	int fd;

	if (faccessat(WORK, "gate", F_OK, 0) != 0)
		return false;
	fd = openat(WORK, "begun", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EEXIST;
}

/*
 * What is told to end in the middle of a dump comes to an end at its next write, and takes its code out of the processes as
 * after any failure: the dump may be ended because it takes room that is not its own. Safe in a handler. It is only for who
 * has a limit already, for that is who is not ended by the signal.
 */
static void let_write_no_more(pid_t pid)
{
	const struct rlimit nothing = { 0 };

	if (is_limited)
		prlimit(pid, RLIMIT_FSIZE, &nothing, NULL);
}

static void pass_on(int signal)
{
	int error = errno;

	(void)signal;
	told_to_end = 1;
	if (passed_to && passed_as == SIGKILL && dump_has_begun())
		let_write_no_more((pid_t)passed_to);
	else if (passed_to)
		kill((pid_t)passed_to, passed_as);
	errno = error;
}

/* To be called before the fork, so that nobody is told to end in between without hearing it. */
static void hear_termination(sigset_t *before)
{
	struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	sigset_t termination;

	sigemptyset(&termination);
	sigaddset(&termination, SIGTERM);
	sigprocmask(SIG_BLOCK, &termination, before);
	sigaction(SIGTERM, &action, NULL);
}

static void pass_termination_to(pid_t child, int signal, const sigset_t *before)
{
	passed_as = signal;
	passed_to = child;
	sigprocmask(SIG_SETMASK, before, NULL);
	if (told_to_end)
		kill(child, signal);
}

static void termination_as_usual(const sigset_t *before)
{
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, before, NULL);
}

/*
 * Reaps until the program has ended, orphans of it too: they would go to the container's first process, which knows
 * nothing of them, and a zombie that nobody reaps is one that no CRIU can dump. When it was killed because we were told
 * to end, nothing of it is left behind; otherwise what it has left is meant to be.
 */
static int reap_until(pid_t program)
{
	int status = 0, code = 0;
	pid_t ended;

	while ((ended = waitpid(-1, &status, 0)) != program)
		if (ended < 0 && errno != EINTR)
			return fail("wait: %s", strerror(errno));
	passed_to = 0;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	errno = 0;
	while (told_to_end && errno != ECHILD) {
		/* Whoever cannot be found cannot be waited for either. */
		if (!kill_children())
			break;
		errno = 0;
		/* All that have ended by now: to look at the list for each is too much where there are hundreds. */
		if (waitpid(-1, NULL, 0) > 0)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	return code;
}

/* The first process inside; returns the exit code. */
static int inside(char **command)
{
	pid_t self = getpid();
	sigset_t before;
	pid_t child;

	if (name_keeper(command, self))
		return EXIT_OWN;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return fail("PR_SET_CHILD_SUBREAPER: %s", strerror(errno));
	know_children();
	is_limited = getenv(room_variable) != NULL;
	hear_termination(&before);
	child = fork();
	if (child < 0)
		return fail("fork: %s", strerror(errno));
	if (child == 0) {
		termination_as_usual(&before);
		end_with(self);
		_exit(start(command));
	}
	pass_termination_to(child, SIGKILL, &before);
	/* What we have open is not for the container's own processes, not even for those of our user. */
	if (prctl(PR_SET_DUMPABLE, 0))
		return fail("PR_SET_DUMPABLE: %s", strerror(errno));
	return reap_until(child);
}

int main(int count, char **arguments)
{
	struct rights rights;
	char **command;
	const char *mode;
	sigset_t before;
	pid_t child;
	bool host, apart;
	int code;

	if (count == 1 && getenv("CRTOOLS_SCRIPT_ACTION"))
		return action_script();
	if (count < 4)
		return usage();
	mode = arguments[2];
	command = arguments + (strcmp(arguments[3], "--") == 0 ? 4 : 3);
	if (!*command || (strcmp(mode, "keep") && strcmp(mode, "clone") && strcmp(mode, "apart") && strcmp(mode, "host")))
		return usage();
	apart = strcmp(mode, "apart") == 0;
	code = join(arguments[1], apart || strcmp(mode, "clone") == 0, apart, &rights);
	if (!code)
		code = give_up_rights(&rights);
	if (code)
		return code;
	host = strcmp(mode, "host") == 0;
	/* A pid namespace that was joined is that of children only. */
	hear_termination(&before);
	child = fork();
	if (child < 0)
		return fail("fork: %s", strerror(errno));
	if (child == 0) {
		if (host) {
			termination_as_usual(&before);
			_exit(start(command));
		}
		sigprocmask(SIG_SETMASK, &before, NULL);
		end_with(0);
		_exit(inside(command));
	}
	pass_termination_to(child, SIGTERM, &before);
	return wait_for(child);
}
