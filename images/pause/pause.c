/*
 * The sandbox process of a pod: holds the pod's namespaces open and, as PID 1 of a shared pid namespace, reaps
 * what is orphaned there. Ends at once on SIGTERM or SIGINT.
 */
#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t set;
	int signal;

	/* PID 1 gets only signals it asks for, so they are taken by waiting instead of by handlers. */
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
