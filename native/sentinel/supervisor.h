/*
 * The process between the sentinel and what it spawns: parent of all orphans of that spawn, and keeper of its deadline,
 * so that neither a slow walk through a tree keeps the sentinel from a death, nor its own death leaves anything running.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	REPORT_WHAT = 200,
	/* A program that has one finds the job's `done` there, and may write a byte when nobody has to wait for it any more. */
	DONE_FD = 199,
};

/* What is told through the pipe at the end. Nothing in it: the supervisor itself was killed. */
struct report {
	int error; /* errno of what could not be done before the program ran; 0: it ran */
	int status; /* as of waitpid() */
	bool expired;
	char what[REPORT_WHAT];
};

struct job {
	const char *enter, *log; /* log NULL: /dev/null */
	pid_t join; /* whose cgroups to join; 0: none */
	char **argv; /* of enter */
	char **env;
	int *fds; /* numbers, ends with -1 */
	const char **paths; /* what to open as these; NULL: close nothing, as in fds */
	const char *modes;
	int64_t deadline_ns; /* monotonic */
	int report; /* the pipe's end to write to */
	int done; /* the same of another one, which the program gets; -1: none */
};

/* In a fresh child. Runs the job and ends. */
void __attribute__((noreturn)) supervise(const struct job *job);

#endif
