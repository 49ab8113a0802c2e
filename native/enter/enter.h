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

/* What a program may do. */
struct rights {
	unsigned long long kept; /* capabilities; all bits: everything as it is */
	bool filtered; /* by system calls */
	bool secluded; /* the directories that are open lead nowhere */
	bool copies_directory; /* 201, to mount it */
};

/*
 * As the environment says what the program is for, by UNDERSTUDY_FOR, which it does not see itself; without it everything.
 * To be called while /proc shows the container's first process by this number.
 */
int rights_of_purpose(pid_t container, struct rights *rights);

/* Gives up all other rights, for good. */
int give_up_rights(const struct rights *rights);

/*
 * Puts copies without a way out in place of the directories open as 200 to 205; to be called outside of containers. Not all:
 * but for 201, of which a copy will be made that is mounted, and the kernel makes none of a copy.
 */
int seclude_directories(bool all);

/* What CRIU calls at each of its stages; nothing to do at most of them. Gives an exit code. */
int action_script(void);

