/*
 * The process between the sentinel and a spawned program. It is the subreaper of the program's orphans and enforces the
 * deadline. So a slow walk through a process tree does not delay the sentinel's reaction to a death, and the sentinel's
 * own death leaves no process running.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	REPORT_WHAT = 200,
};

/* The result, written to the pipe at the end. An empty pipe means that the supervisor itself was killed. */
struct report {
	int error; /* errno of the step that failed before the program ran; 0: it ran */
	int status; /* as of waitpid() */
	bool expired;
	char what[REPORT_WHAT];
};

struct job {
	const char *nsrun, *log; /* log NULL: /dev/null */
	pid_t join; /* the process whose cgroups to join; 0: none */
	char **argv; /* of nsrun */
	char **env;
	int *fds; /* descriptor numbers, ends with -1 */
	const char **paths; /* the path to open for each of these descriptors */
	const char *modes;
	int64_t deadline_ns; /* monotonic */
	int report; /* write end of the pipe for the report */
	int done; /* write end of another pipe, which the program gets as FD_DONE; -1: none */
};

/* Runs the job and exits. Call it in a fresh child. */
void __attribute__((noreturn)) supervise(const struct job *job);

#endif
