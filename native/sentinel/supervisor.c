#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_join.h"
#include "clock.h"
#include "descriptors.h"
#include "tree.h"

/* Time for `nsrun` to reap the processes that it has killed. */
enum { TELL_MS = 1000 };

/* Closes all descriptors above the standard ones but these two; either may be -1. */
static void close_all_but(int one, int other)
{
	int low = one < other ? one : other, high = one < other ? other : one;

	if (low > 3)
		syscall(SYS_close_range, 3, low - 1, 0);
	if (high > (low < 3 ? 3 : low + 1))
		syscall(SYS_close_range, low < 3 ? 3 : low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0U, 0);
}

static void write_report(int fd, const struct report *report)
{
	/* Far less than a pipe holds. */
	if (write(fd, report, sizeof *report) != (ssize_t)sizeof *report)
		_exit(1);
}

static int open_as_asked(const char *path, char mode)
{
	switch (mode) {
	case 'w':
		return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0600);
	case 'd':
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	default:
		return open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	}
}

static void __attribute__((noreturn)) fail(int report, const char *what)
{
	struct report failed = { .error = errno ? errno : EIO };

	snprintf(failed.what, sizeof failed.what, "%s", what);
	write_report(report, &failed);
	_exit(127);
}

/* Returns a number above all requested descriptors. */
static int first_free(const struct job *job)
{
	int highest = FD_DONE;

	for (size_t i = 0; job->fds[i] >= 0; i++)
		if (job->fds[i] > highest)
			highest = job->fds[i];
	return highest + 1;
}

/*
 * Moves a descriptor above all requested numbers, so that dup2() overwrites none that is still needed. A low hard limit
 * of open files leaves no room there. The error names the limit, because every spawn would fail by it.
 */
static int out_of_the_way(const struct job *job, int fd, int report)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, first_free(job));

	if (fd >= 0 && copy < 0) {
		char what[REPORT_WHAT];
		struct rlimit files = { 0 };

		/* dup reports "invalid argument" for a number beyond the limit, so name the limit instead. */
		getrlimit(RLIMIT_NOFILE, &files);
		snprintf(what, sizeof what, "open files of the sentinel are limited to %llu (RLIMIT_NOFILE), descriptor %d",
			 (unsigned long long)files.rlim_cur, first_free(job));
		errno = EMFILE;
		fail(report, what);
	}
	if (fd >= 0 && copy != fd)
		close(fd);
	return copy;
}

static void standard_descriptors(const struct job *job, int report)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log;

	if (null < 0)
		fail(report, "/dev/null");
	log = job->log ? open(job->log, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0600) : dup(null);
	if (log < 0)
		fail(report, job->log);
	null = out_of_the_way(job, null, report);
	log = out_of_the_way(job, log, report);
	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		fail(report, "standard descriptors");
}

static void __attribute__((noreturn)) run(const struct job *job, int report)
{
	struct rlimit files = { 0 };
	char what[REPORT_WHAT] = "";
	sigset_t none;

	/* A session of its own: its orphans in the container stay in it, whichever process adopts them. */
	setsid();
	standard_descriptors(job, report);
	if (job->done >= 0 && dup2(out_of_the_way(job, job->done, report), FD_DONE) < 0)
		fail(report, "the pipe of what is done");
	for (size_t i = 0; job->fds[i] >= 0; i++) {
		int fd = out_of_the_way(job, open_as_asked(job->paths[i], job->modes[i]), report);

		if (fd < 0 || dup2(fd, job->fds[i]) < 0)
			fail(report, job->paths[i]);
	}
	if (job->join && !cgroup_join(job->join, what, sizeof what))
		fail(report, what);
	/* The sentinel raised its own limit. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 1024 * 1024) {
		files.rlim_cur = 1024 * 1024;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(job->nsrun, job->argv, job->env);
	fail(report, job->nsrun);
}

/* Kills and reaps the remaining descendants of the ended program until none is left. */
static void clear(void)
{
	pid_t self = getpid();

	for (;;) {
		struct process_stat stat;
		struct processes set = { 0 };
		pid_t gone = waitpid(-1, NULL, WNOHANG);

		if (gone < 0)
			return;
		if (gone > 0 || !process_stat(self, &stat))
			continue;
		tree_children((struct process){ .pid = self, .start = stat.start }, &set);
		for (size_t i = 0; i < set.count; i++)
			tree_kill(set.list[i]);
		processes_free(&set);
		waitpid(-1, NULL, 0);
	}
}

/* Waits for the child's end, the deadline or SIGTERM. True if the child has ended by itself; it is not reaped. */
static bool child_ended(pid_t child, int64_t deadline_ns, const sigset_t *awaited, bool *expired)
{
	for (;;) {
		siginfo_t info = { 0 };
		int64_t left = deadline_ns - monotonic_ns();
		struct timespec timeout = { .tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000) };
		int signal;

		if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
			return true;
		if (left <= 0) {
			*expired = true;
			return false;
		}
		signal = sigtimedwait(awaited, NULL, &timeout);
		if (signal == SIGTERM)
			return false;
		/* Any number of orphans may end; the child is reaped last. */
		tree_reap_others(child);
	}
}

/*
 * `nsrun` reaps the processes that it kills inside the container; if it were killed itself, they would stay zombies
 * there. It does not kill a CRIU that is past its gate, because the middle of a dump is a point at which that can ruin
 * the application. Only the deadline of that dump, `until_ns`, ends both.
 */
static void tell_to_end(pid_t child, int64_t until_ns, const sigset_t *awaited)
{
	bool late = false;

	kill(child, SIGTERM);
	/* A second SIGTERM during this wait must not cut it short. */
	while (!child_ended(child, until_ns, awaited, &late) && !late)
		;
}

void supervise(const struct job *job)
{
	struct report report = { 0 };
	struct process_stat stat;
	bool is_dump = job->done >= 0;
	int failures[2];
	sigset_t awaited;
	pid_t child;

	process_between(NULL, NULL);
	close_all_but(job->report, job->done);
	setsid();
	prctl(PR_SET_NAME, "supervisor");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	umask(077);
	/*
	 * The supervisor only waits, and an application may be stopped while it does. The program itself must not get
	 * this priority: `nsrun` resets it.
	 */
	setpriority(PRIO_PROCESS, 0, -20);
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGCHLD);
	sigaddset(&awaited, SIGTERM);
	sigprocmask(SIG_SETMASK, &awaited, NULL);
	if (pipe2(failures, O_CLOEXEC | O_NONBLOCK) != 0)
		fail(job->report, "pipe");
	child = fork();
	if (child < 0)
		fail(job->report, "fork");
	if (child == 0) {
		int pipe = out_of_the_way(job, failures[1], failures[1]);

		close_all_but(pipe, job->done);
		run(job, pipe);
	}
	close(failures[1]);
	if (job->done >= 0)
		close(job->done);
	if (!child_ended(child, job->deadline_ns, &awaited, &report.expired)) {
		int64_t begin_ns = monotonic_ns();

		if (is_dump && job->deadline_ns > begin_ns)
			begin_ns = job->deadline_ns;
		tell_to_end(child, begin_ns + TELL_MS * NS_PER_MS, &awaited);
		/*
		 * Also if `nsrun` has ended as requested: processes outside its tree but in its session must die, too.
		 */
		if (process_stat(child, &stat))
			tree_kill((struct process){ .pid = child, .start = stat.start });
	}
	waitpid(child, &report.status, 0);
	clear();
	struct report failed;

	if (read(failures[0], &failed, sizeof failed) == (ssize_t)sizeof failed)
		report = failed;
	write_report(job->report, &report);
	_exit(0);
}
