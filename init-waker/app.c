/* Starts the app of an understudy as a child process, and tells whether it lives. */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pid1.h"

void exits_remember(struct exits *exits, pid_t pid, int code)
{
	exits->ended[exits->count++ % EXITS_REMEMBERED] = (struct ended){ .pid = pid, .code = code };
}

enum child_state child_state(const struct exits *exits, pid_t pid, int *code)
{
	siginfo_t info = { 0 };
	size_t known = exits->count < EXITS_REMEMBERED ? exits->count : EXITS_REMEMBERED;

	/*
	 * Check living children first: an earlier child may have had the same pid. WNOWAIT leaves a zombie to
	 * reap_children(), whose SIGCHLD may still be unread.
	 */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
		if (info.si_pid == 0)
			return CHILD_ALIVE;
		*code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
		return CHILD_DEAD;
	}
	for (size_t i = 1; i <= known; i++) {
		const struct ended *ended = &exits->ended[(exits->count - i) % EXITS_REMEMBERED];

		if (ended->pid == pid) {
			*code = ended->code;
			return CHILD_DEAD;
		}
	}
	return CHILD_UNKNOWN;
}

static void silence(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
}

static void __attribute__((noreturn)) become(char **argv, const sigset_t *mask, bool quiet, int report)
{
	int error;

	if (quiet)
		silence();
	/* A session leader: CRIU dumps a tree only with its session's leader. */
	setsid();
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(report, &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

pid_t spawn(char **argv, const sigset_t *mask, bool quiet)
{
	int report[2], error = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) != 0)
		return -1;
	pid = fork();
	if (pid == 0)
		become(argv, mask, quiet, report[1]);
	error = errno;
	close(report[1]);
	if (pid > 0) {
		/*
		 * A successful exec closes the pipe; only a failed one writes. Its child exits and is reaped like any
		 * other.
		 */
		while ((n = read(report[0], &error, sizeof error)) < 0 && errno == EINTR)
			;
		if (n == (ssize_t)sizeof error)
			pid = -1;
	}
	close(report[0]);
	errno = error;
	return pid;
}
