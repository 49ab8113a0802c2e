/* What is known of a process that is not ours, and signals that cannot hit another one. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process for certain: a number alone may have been given to somebody else since. */
struct process {
	pid_t pid;
	uint64_t start; /* field 22 of /proc/PID/stat, clock ticks since boot */
};

struct process_stat {
	char state;
	pid_t parent;
	pid_t session;
	uint64_t start;
};

/* False when there is no such process. */
bool process_stat(pid_t pid, struct process_stat *stat);

/* A pidfd of exactly this process, or -1 when it is gone (ESRCH) or cannot be had (errno). */
int process_open(struct process process);

/* Sends a signal to exactly this process; -1 with errno, ESRCH when it is gone. */
int process_signal(struct process process, int signal);

/* Whether it is gone: no such process, or one that has ended and not been reaped. */
bool process_ended(struct process process);

/* Whether it does nothing more: stopped, by a signal or a tracer, or ended. */
bool process_stopped(struct process process);

/* Whether a signal waits for it, or for its first thread; also when that cannot be told, as of one that is gone. */
bool process_has_pending(pid_t pid, int signal);

struct processes {
	struct process *list;
	size_t count, room;
};

#ifndef PROCESSES_MAX
#define PROCESSES_MAX 65536
#endif

/* False when there is no room for more. */
bool processes_add(struct processes *set, struct process process);
bool processes_have(const struct processes *set, pid_t pid);
void processes_free(struct processes *set);

#endif
