#ifndef APP_H
#define APP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { EXITS_REMEMBERED = 64 };

/* A child that has ended, kept because whoever restored it may ask after it only then. */
struct ended {
	pid_t pid;
	int code;
};

/* Children that have ended, the latest EXITS_REMEMBERED of them. */
struct exits {
	struct ended ended[EXITS_REMEMBERED];
	size_t count; /* ever */
};

enum child_state { CHILD_ALIVE, CHILD_DEAD, CHILD_UNKNOWN };

void exits_remember(struct exits *exits, pid_t pid, int code);

/* Whether `pid` is a child of ours now; if it was one and has ended, `code` is what it ended with. */
enum child_state child_state(const struct exits *exits, pid_t pid, int *code);

/*
 * Runs `argv` in a child, in a session of its own, with signal mask `mask`; `quiet`: its input and output are /dev/null.
 * Returns its pid once the exec has succeeded, or -1 and the errno of the fork or the exec.
 */
pid_t spawn(char **argv, const sigset_t *mask, bool quiet);

#endif
