/* Reads the state of other processes, and sends signals that cannot hit another process. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process_stat.h"

/*
 * A tenant may have any number of processes, so a loop over them calls process_step() at each one, and `act` does what must not
 * wait for the end of the loop. NULL: there is nothing to do. A child of fork() has to begin with that.
 */
void process_between(void (*act)(void *context), void *context);
void process_step(void);

/* Identifies a process across reuse of its pid. */
struct process {
	pid_t pid;
	uint64_t start; /* field 22 of /proc/PID/stat, clock ticks since boot */
};

/*
 * Returns a pidfd of exactly this process, or -1: ESRCH if the process is gone, another errno if pidfd_open() failed.
 */
int process_open(struct process process);

/* Sends a signal to exactly this process; -1 with errno, ESRCH if the process is gone. */
int process_signal(struct process process, int signal);

/* True if the process is gone or a zombie. */
bool process_ended(struct process process);

/* True if the process does not run: stopped by a signal or a tracer, or ended. */
bool process_stopped(struct process process);

/*
 * True if a signal is pending for the process or its first thread, and also if that is unknown, e.g. because the
 * process is gone.
 */
bool process_has_pending(pid_t pid, int signal);

/* Returns the process that traces it; 0: none, or it is gone. */
pid_t process_tracer(pid_t pid);

struct processes {
	struct process *list;
	size_t count, room;
	size_t next; /* behind the place of the latest find: processes are looked up in the order in which they were added */
};

#ifndef PROCESSES_MAX
#define PROCESSES_MAX 65536
#endif

/* False if the set is full. */
bool processes_add(struct processes *set, struct process process);
bool processes_have(struct processes *set, pid_t pid);
/* True if it has exactly this process. */
bool processes_have_this(struct processes *set, struct process process);
void processes_free(struct processes *set);

#endif
