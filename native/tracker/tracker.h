/* The parts of the tracker. See main.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Most processes of a pod that are tracked, and most threads and mappings of each. The others are saved whole. */
enum { PROCESSES_MAX = 32, THREADS_MAX = 4096, MAPPINGS_MAX = 8192 };

/* Longest time that the threads of a process are held for one preparation, without the calls that it makes itself. */
enum { HELD_NS = 100 * 1000 * 1000 };

/* The part of a wait status that tells a stop for the tracer, or of the whole process, from that for a signal. */
enum { EVENT_STOP = 128 };

struct tracked {
	pid_t pid;
	uint64_t start; /* as in /proc/PID/stat */
	int pidfd;
	int uffd; /* -1: none yet */
	const char *refused; /* a reason for good; NULL: none */
	bool seen; /* by the present request */
};

/* All threads of a process, held by ptrace. Only the thread that holds them may use it; its end lets them run again. */
struct held {
	pid_t pid;
	struct {
		pid_t id;
		int signal; /* to pass on; 0: none */
	} threads[THREADS_MAX];
	int count;
	int64_t until; /* monotonic, ns */
};

/* Stops all threads. Returns NULL, or why not: then the caller has to end, so that the kernel lets them run again. */
const char *hold(struct held *held, pid_t pid);

void let_go(struct held *held);

/* Waits until a thread stops, until the deadline. Returns its wait status; -1: it did not. */
int await_stop(pid_t thread, int64_t until);

/*
 * Takes a new userfaultfd of a held process: the process makes it, this program takes it over, and the process closes
 * it. Returns NULL, or why not. `*for_good` tells that another try would fail, too.
 */
const char *take_userfaultfd(struct held *held, int pidfd, int *uffd, bool *for_good);

/*
 * Takes over a descriptor of a process if it is a userfaultfd. Returns NULL, or why not: "forged" for any other
 * descriptor, which never becomes one of this process.
 */
const char *take_over(int pidfd, int number, int *uffd);

/*
 * Registers all private anonymous mappings of a held process that are not registered. Returns NULL, or why not. Every
 * page of a newly registered mapping counts as written.
 */
const char *register_mappings(const struct held *held, int uffd);

/* True if the process of an entry still lives. */
bool is_same(const struct tracked *process);

/*
 * Prepares a process. Returns NULL, or why it is not tracked: "late" after `until`, monotonic, ns. Ends this program if
 * the time for one process is over by far, because then the kernel lets all threads run.
 */
const char *prepare(struct tracked *process, int64_t until, int64_t *held_ns);

/* True if the kernel can tell which pages of this program were written; tries all that the tracker relies on. */
const char *try_kernel(void);
