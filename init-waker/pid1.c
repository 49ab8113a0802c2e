/* The duties of the first process of a pid namespace. */
#include "pid1.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int signals_open(sigset_t *previous)
{
	sigset_t all;

	/* Not PID 1 (started by hand, or the pod shares one pid namespace): adopt orphans all the same. */
	if (getpid() != 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	/*
	 * Uses the system call, because sigfillset() and sigprocmask() leave out the signals that a C library reserves
	 * for threads, and this program has no threads. One of these signals is SIGRTMIN in other libraries. Our own
	 * faults still kill: the kernel forces them.
	 */
	memset(&all, 0xff, sizeof all);
	sigemptyset(previous);
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, previous, _NSIG / 8) != 0)
		return -1;
	return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

void reap_children(void *context, on_reaped reaped)
{
	int status;
	pid_t pid;

	/* One SIGCHLD may stand for many children: signals of one number do not queue. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (reaped)
			reaped(context, pid, status);
}

int exit_code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
