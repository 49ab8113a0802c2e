#include "sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conntrack.h"
#include "haste.h"
#include "inbound.h"
#include "log.h"

enum { STACK_BYTES = 256 * 1024 };

struct sweep {
	struct sweep *next;
	int (*does)(struct sweep *sweep, struct haste *haste); /* returns 0 or an errno */
	const char *otherwise; /* for the log: what a failure means */
	int netlink;
	struct addresses addresses;
	/* For sweeper_end(): the process that begins to die, its network, and true once that network keeps its connections. */
	struct process process;
	struct network network;
	atomic_bool spared;
};

/* All of these are under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct sweep *first, **last = &first, *current;
static bool runs;

static struct sweep *take(void)
{
	struct sweep *sweep;

	pthread_mutex_lock(&lock);
	while (!first)
		pthread_cond_wait(&wake, &lock);
	sweep = first;
	first = sweep->next;
	if (!first)
		last = &first;
	current = sweep;
	pthread_mutex_unlock(&lock);
	return sweep;
}

static void put_down(struct sweep *sweep)
{
	pthread_mutex_lock(&lock);
	current = NULL;
	pthread_mutex_unlock(&lock);
	close(sweep->netlink);
	free(sweep);
}

static void *work(void *argument)
{
	struct haste haste = { 0 };

	(void)argument;
	/* The sentinel has priority over everything else. */
	setpriority(PRIO_PROCESS, 0, 0);
	for (;;) {
		struct sweep *sweep;
		int error;

		haste_wait(&haste);
		sweep = take();
		error = sweep->does(sweep, &haste);
		haste_end(&haste);
		if (error)
			log_failure(sweep->otherwise, error);
		put_down(sweep);
	}
	return NULL;
}

/* Call it with the lock. Returns 0 or an errno. */
static int start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	if (runs)
		return 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, work, NULL);
	pthread_attr_destroy(&attributes);
	runs = !error;
	return error;
}

/* Returns 0 or an errno. */
static int append(struct sweep *sweep)
{
	int error;

	pthread_mutex_lock(&lock);
	error = start();
	if (!error) {
		*last = sweep;
		last = &sweep->next;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

/* Takes a copy of the order. */
static void order(const struct sweep *order)
{
	struct sweep *sweep = malloc(sizeof *sweep);
	int error = ENOMEM;

	if (sweep) {
		*sweep = *order;
		sweep->netlink = fcntl(order->netlink, F_DUPFD_CLOEXEC, 0);
		error = sweep->netlink < 0 ? errno : append(sweep);
	}
	if (!error)
		return;
	log_failure(order->otherwise, error);
	if (sweep && sweep->netlink >= 0)
		close(sweep->netlink);
	free(sweep);
}

static int forget(struct sweep *sweep, struct haste *haste)
{
	/* It takes long, and only clients that connect again from the same port depend on it. */
	haste_end(haste);
	return conntrack_forget(sweep->netlink, &sweep->addresses) < 0 ? errno : 0;
}

void sweeper_forget(int netlink, const struct addresses *addresses)
{
	order(&(struct sweep){ .does = forget,
			       .otherwise = "conversations from before a death may go on",
			       .netlink = netlink,
			       .addresses = *addresses });
}

static int end_inbound(struct sweep *sweep, struct haste *haste)
{
	haste_begin(haste);
	return inbound_end(sweep->netlink, &sweep->addresses, sweep->process, haste, &sweep->spared);
}

void sweeper_end(int netlink, const struct network *network, const struct addresses *addresses, struct process process)
{
	order(&(struct sweep){ .does = end_inbound,
			       .otherwise = "clients of a dead app wait until its memory is freed",
			       .netlink = netlink,
			       .addresses = *addresses,
			       .process = process,
			       .network = *network });
}

static void spare(struct sweep *sweep, const struct network *network)
{
	if (network_same(&sweep->network, network))
		atomic_store(&sweep->spared, true);
}

void sweeper_spare(const struct network *network)
{
	pthread_mutex_lock(&lock);
	for (struct sweep *sweep = first; sweep; sweep = sweep->next)
		spare(sweep, network);
	if (current)
		spare(current, network);
	pthread_mutex_unlock(&lock);
}
