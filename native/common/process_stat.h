#ifndef PROCESS_STAT_H
#define PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
	char state;
	pid_t parent;
	pid_t session;
	unsigned flags; /* PF_* of the kernel */
	uint64_t start; /* clock ticks since boot; with the pid it identifies a process */
};

/* False if no such process exists. */
bool process_stat(pid_t pid, struct process_stat *stat);

/* Reads as much of /proc/PID/FILE as fits, as a string; false if there is nothing. */
bool process_read(pid_t pid, const char *file, char *text, size_t size);

#endif
