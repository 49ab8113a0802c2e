/*
 * Runs a program inside the namespaces of another process.
 *
 *   nsrun PID[:START] keep|clone|apart|host [--] PROGRAM ARGUMENT...
 *
 * keep   all of mount, uts, ipc, net, pid and cgroup namespaces.
 * clone  the same, with a private copy of the mount namespace: later mounts in the target's own propagate to the copy,
 *        but those over /proc never propagate back (see overlay_proc).
 * apart  as clone, but without the pid namespace, and so with its own /proc: the program has no pid in the container.
 * host   as keep, for programs that outlive their starter: nothing ends them.
 *
 * UNDERSTUDY_FOR=dump|restore|pages|track|files in the environment limits the program to the rights for that purpose, see
 * rights.c.
 *
 * UNDERSTUDY_ROOM=BYTES limits the size of each file: a write beyond it fails (EFBIG). The program does not see the
 * variable.
 *
 * START, the start time of the process as field 22 of /proc/PID/stat, guards against a reused pid. Open files stay
 * open; the arguments name programs and files through them (/proc/self/fd/N), so nothing of ours has to be in the
 * target's file system. "@KEEPER@" in an argument stands for the pid, as the program sees it, of a process that has the
 * same files open for as long as the program runs: for children of a program that closes its own.
 *
 * SIGTERM kills the program and all its descendants, and reaps them there. SIGKILL to all of them would leave zombies
 * to the container's first process. SIGTERM does not kill a CRIU that is dumping, because its parasite code may still
 * be in a process. With UNDERSTUDY_ROOM such a CRIU can write nothing more, and so it fails; without that it ends soon
 * by itself. SIGKILL ends it at once.
 *
 * As CRIU's action script this program mounts a new /proc over that of the restored tree, see proc.c.
 *
 * Exit codes: the program's; 128 + the signal that ended it; 127 if it cannot be found and 126 if it cannot be started;
 * 125 for any other failure. Every failure is a line on standard error.
 *
 * Long because the order of its steps is what makes them safe: each changes the rights of the next.
 */
#include "nsrun.h"

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

#include "descriptors.h"
#include "number.h"
#include "process_stat.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static const char keeper_mark[] = "@KEEPER@", room_variable[] = "UNDERSTUDY_ROOM";

static int usage(void)
{
	fputs("usage: nsrun PID[:START] keep|clone|apart|host [--] PROGRAM ARGUMENT...\n", stderr);
	return EXIT_OWN;
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

/* The program and its files are named through /proc. */
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
 * Changes only our copy of the mounts. The new /proc shows only processes that we might trace, and is read-only: it is
 * the node's /proc, and files like sys/kernel/core_pattern require no capability of root.
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
	struct process_stat stat;
	int64_t pid, wanted = 0;
	int pidfd;

	if (!parse_digits(target, (size_t)(colon - target), INT32_MAX, &pid) || pid == 0)
		return usage();
	if (*colon && !parse_number(colon + 1, INT64_MAX, &wanted))
		return usage();
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0)
		return fail("process %d: %s", (int)pid, strerror(errno));
	/* Read the start time after opening the pidfd: only then does it describe the pidfd's process. */
	if (*colon) {
		if (!process_stat((pid_t)pid, &stat))
			return fail("process %d is gone", (int)pid);
		if (stat.start != (uint64_t)wanted)
			return fail("process %d is gone: it started at %llu, not %llu", (int)pid, (unsigned long long)stat.start,
				    (unsigned long long)wanted);
	}
	if (same_user_namespace((pid_t)pid) || rights_of_purpose((pid_t)pid, rights))
		return EXIT_OWN;
	/* Before joining: directories of another mount namespace cannot be copied. */
	if ((clone || rights->secluded) && seclude_directories(!rights->copies_directory))
		return EXIT_OWN;
	if (setns(pidfd, all))
		return fail("join the namespaces of process %d: %s", (int)pid, strerror(errno));
	close(pidfd);
	if (clone && unshare(CLONE_NEWNS))
		return fail("copy the mount namespace of process %d: %s", (int)pid, strerror(errno));
	if (apart && lay_own_proc())
		return EXIT_OWN;
	if (chdir("/"))
		return fail("/: %s", strerror(errno));
	return proc_is_proc();
}

/* Replaces every mark in every argument. */
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

/* SIGXFSZ must not kill the program: a CRIU would leave its code in the processes that it dumps. */
static int limit_files(void)
{
	const char *text = getenv(room_variable);
	int64_t bytes;
	struct rlimit limit;

	if (!text)
		return 0;
	if (!parse_number(text, INT64_MAX, &bytes))
		return fail("%s=%s is no number", room_variable, text);
	limit = (struct rlimit){ .rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes };
	unsetenv(room_variable);
	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &limit) ? fail("RLIMIT_FSIZE: %s", strerror(errno)) : 0;
}

/*
 * A core of this program would contain a container's memory. A restored process gets the limit from its images instead.
 */
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
	/* The sentinel has a high priority. The program must not inherit it, but may raise its own. */
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

/* In the child: if the parent dies, even by SIGKILL, no CRIU may remain for which no process waits. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Zero: the parent is outside our pid namespace, so the pids cannot be compared. */
	if (parent != 0 && getppid() != parent)
		_exit(EXIT_OWN);
}

/* By UNDERSTUDY_ROOM. */
static bool is_limited;
/* The child that receives our SIGTERM. 0: none yet; then told_to_end remembers the signal. */
static volatile sig_atomic_t passed_to;
static volatile sig_atomic_t passed_as;
static volatile sig_atomic_t told_to_end;

/*
 * True if a CRIU has passed its gate (criu-shim/gate.c); false for any other program. If this call makes the file, CRIU
 * can no longer pass: only one of the two makes it. Async-signal-safe.
 */
static bool dump_has_begun(void)
{
	int fd;

	if (faccessat(FD_WORK, "gate", F_OK, 0) != 0)
		return false;
	fd = openat(FD_WORK, "begun", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EEXIST;
}

/*
 * Ends a dump at its next write; CRIU then takes its code out of the processes as after any failure. The dump may use
 * room that it must not use. Async-signal-safe. Only for a program with a limit, because that one ignores SIGXFSZ.
 */
static void let_write_no_more(pid_t pid)
{
	const struct rlimit nothing = { 0 };

	if (is_limited)
		prlimit(pid, RLIMIT_FSIZE, &nothing, NULL);
}

/* Async-signal-safe. */
static void tell_child(void)
{
	if (passed_as == SIGKILL && dump_has_begun())
		let_write_no_more((pid_t)passed_to);
	else
		kill((pid_t)passed_to, passed_as);
}

static void pass_on(int signal)
{
	int error = errno;

	(void)signal;
	told_to_end = 1;
	if (passed_to)
		tell_child();
	errno = error;
}

/* Call it before the fork, so that no SIGTERM in between is lost. */
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
	/* On a busy machine the child has run for a while by now, and may be past its gate. */
	if (told_to_end)
		tell_child();
}

static void termination_as_usual(const sigset_t *before)
{
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, before, NULL);
}

/*
 * Reaps until the program has ended, including its orphans. Otherwise they would go to the container's first process,
 * which does not know them, and CRIU cannot dump a zombie that no process reaps. After a SIGTERM none of the program's
 * processes is left; otherwise remaining processes are intended.
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
		/* If we cannot find the children we cannot wait for them either. */
		if (!kill_children())
			break;
		errno = 0;
		/* Reap all that have ended: reading the list for each one is too slow with hundreds. */
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
	/* The container's processes must not reach our descriptors, not even those of the same user. */
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
	/* Joining a pid namespace applies only to children. */
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
