#include "committer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "netlink.h"

/* Workers that wait for the kernel are bounded, because each of them has a stack. */
enum { WORKERS_MAX = 256, STACK_BYTES = 256 * 1024 };

struct committer {
	int netlink;
	bool busy, orphan; /* orphan: the worker frees it */
	int error;
	struct batch batch;
	uint8_t bytes[COMMIT_BYTES];
};

/* A thread that does one batch after the other, until one takes too long: then it ends with that batch. */
struct worker {
	struct committer *job;
	pthread_cond_t wake;
	bool retired;
};

/* All of these are under the lock. One idle worker is enough, because the sentinel waits for each batch. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct worker *idle;
static int workers;

static void condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void begin(void)
{
	condition_init(&done);
}

static void release(struct committer *committer)
{
	close(committer->netlink);
	free(committer);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct sched_param lowest = { .sched_priority = 1 };
	bool retired;

	/* A thread does not inherit this priority: see come_first(). Without it, it waits for a processor more often. */
	syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
	pthread_mutex_lock(&lock);
	do {
		struct committer *committer;
		int error;

		while (!worker->job)
			pthread_cond_wait(&worker->wake, &lock);
		committer = worker->job;
		pthread_mutex_unlock(&lock);
		error = batch_commit(committer->netlink, &committer->batch);
		pthread_mutex_lock(&lock);
		worker->job = NULL;
		committer->error = error;
		committer->busy = false;
		if (committer->orphan)
			release(committer);
		retired = worker->retired;
		if (!retired)
			pthread_cond_signal(&done);
	} while (!retired);
	workers--;
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&worker->wake);
	free(worker);
	return NULL;
}

/* Returns NULL with errno. */
static struct worker *hire(void)
{
	struct worker *worker;
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	if (workers >= WORKERS_MAX) {
		errno = EAGAIN;
		return NULL;
	}
	worker = calloc(1, sizeof *worker);
	if (!worker)
		return NULL;
	condition_init(&worker->wake);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	if (!error) {
		workers++;
		return worker;
	}
	pthread_cond_destroy(&worker->wake);
	free(worker);
	errno = error;
	return NULL;
}

struct committer *committer_open(int netlink)
{
	struct committer *committer = calloc(1, sizeof *committer);

	if (!committer) {
		close(netlink);
		errno = ENOMEM;
		return NULL;
	}
	committer->netlink = netlink;
	return committer;
}

static int open_in(void *context, const struct network *network)
{
	(void)context;
	(void)network;
	return netlink_open(NETLINK_NETFILTER);
}

struct committer *committer_enter(struct process process)
{
	int netlink = network_enter(process, open_in, NULL);

	return netlink < 0 ? NULL : committer_open(netlink);
}

static struct timespec in(int64_t ns)
{
	int64_t at = monotonic_ns() + ns, second = 1000 * (int64_t)NS_PER_MS;

	return (struct timespec){ .tv_sec = at / second, .tv_nsec = at % second };
}

/* Call it with the lock. */
static int commit(struct committer *committer, const struct batch *batch, int64_t patience_ns)
{
	struct timespec until;
	struct worker *worker;
	int waited = 0;

	if (committer->busy)
		return EBUSY;
	if (batch->overflow || batch->length > sizeof committer->bytes)
		return EMSGSIZE;
	worker = idle ? idle : hire();
	if (!worker)
		return errno;
	idle = NULL;
	memcpy(committer->bytes, batch->bytes, batch->length);
	committer->batch = *batch;
	committer->batch.bytes = committer->bytes;
	committer->busy = true;
	worker->job = committer;
	pthread_cond_signal(&worker->wake);
	until = in(patience_ns);
	while (committer->busy && waited != ETIMEDOUT)
		waited = pthread_cond_timedwait(&done, &lock, &until);
	if (committer->busy) {
		worker->retired = true;
		return EINPROGRESS;
	}
	idle = worker;
	return committer->error;
}

int committer_commit(struct committer *committer, const struct batch *batch, int64_t patience_ns)
{
	int error;

	pthread_once(&once, begin);
	pthread_mutex_lock(&lock);
	error = commit(committer, batch, patience_ns);
	pthread_mutex_unlock(&lock);
	return error;
}

int committer_result(struct committer *committer)
{
	int result;

	pthread_mutex_lock(&lock);
	result = committer->busy ? EBUSY : committer->error;
	pthread_mutex_unlock(&lock);
	return result;
}

void committer_free(struct committer *committer)
{
	if (!committer)
		return;
	pthread_mutex_lock(&lock);
	if (committer->busy)
		committer->orphan = true;
	else
		release(committer);
	pthread_mutex_unlock(&lock);
}
