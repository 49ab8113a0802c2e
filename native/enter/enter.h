#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Our own failures, as distinct from those of the program that is run. */
enum { EXIT_OWN = 125 };

/* One line on standard error; gives EXIT_OWN. */
__attribute__((format(printf, 1, 2))) int fail(const char *format, ...);

/* Exit code of a child, 128 + signal when a signal ended it. */
int wait_for(pid_t child);

/* To be called before there are children, and before another /proc is laid over this one. */
void know_children(void);

/* All of them, orphans that became ours too; false when nobody can say who they are. */
bool kill_children(void);

/* Puts copies without a way out in place of the directories open as 200, 201 and 202; to be called outside of containers. */
int seclude_directories(void);

/* What CRIU calls at each of its stages; nothing to do at most of them. Gives an exit code. */
int action_script(void);

