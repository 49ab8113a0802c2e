#ifndef APP_H
#define APP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { EXITS_REMEMBERED = 64 };

/* A child that has ended, kept because the agent that restored it may ask for it only later. */
struct ended {
	pid_t pid;
	int code;
};

/* The latest EXITS_REMEMBERED children that have ended. */
struct exits {
	struct ended ended[EXITS_REMEMBERED];
	size_t count; /* total count */
};

enum child_state { CHILD_ALIVE, CHILD_DEAD, CHILD_UNKNOWN };

void exits_remember(struct exits *exits, pid_t pid, int code);

/* Tells whether `pid` is a child of ours now. If it was one and has ended, sets `code` to its exit code. */
enum child_state child_state(const struct exits *exits, pid_t pid, int *code);

/*
 * Runs `argv` in a child, in a session of its own, with signal mask `mask`; `quiet` connects its input and output to
 * /dev/null. Returns its pid once the exec has succeeded, or -1 and the errno of the fork or the exec.
 */
pid_t spawn(char **argv, const sigset_t *mask, bool quiet);

#endif
