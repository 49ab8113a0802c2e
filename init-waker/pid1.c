/* What the first process of a pid namespace owes to the others. */
#include "pid1.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

int signals_open(sigset_t *previous)
{
	sigset_t all;

	/* Not PID 1 (started by hand, or the pod shares one pid namespace): orphans come to us all the same. */
	if (getpid() != 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* Faults of our own still kill: the kernel forces a blocked SIGSEGV. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, previous);
	return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

void reap_children(void *context, on_reaped reaped)
{
	int status;
	pid_t pid;

	/* One SIGCHLD may stand for many: signals of one number do not queue. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (reaped)
			reaped(context, pid, status);
}

int exit_code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
