/*
 * The sandbox process of a pod: holds the pod's namespaces open and, as PID 1 of a shared pid namespace, reaps orphans.
 * Ends at once on SIGTERM or SIGINT.
 */
#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t set;
	int signal;

	/* The kernel drops signals that PID 1 has no handler for, so they are blocked and taken with sigwait(). */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, 0);

	for (;;) {
		if (sigwait(&set, &signal) != 0)
			return 1;
		if (signal != SIGCHLD)
			return 0;
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
	}
}
