#include "loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

enum {
	EVENTS = 64,
	/* A third of the shortest time that answers of voters count. */
	LATE_MS = 200,
};

bool loop_open(struct loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN };

	*loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
	loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return loop->epoll >= 0 && loop->timer >= 0 && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->timer, &event) == 0;
}

bool loop_add(struct loop *loop, struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0;
}

bool loop_change(struct loop *loop, struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event) == 0;
}

void loop_close(struct loop *loop, struct source *source)
{
	if (source->fd < 0)
		return;
	/* Removed explicitly: close() would not remove it while a child holds a copy of the descriptor. */
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}

void loop_forget(struct loop *loop, struct source *source)
{
	loop_close(loop, source);
	source->next_forgotten = loop->forgotten;
	loop->forgotten = source;
}

static void free_forgotten(struct loop *loop)
{
	while (loop->forgotten) {
		struct source *source = loop->forgotten;

		loop->forgotten = source->next_forgotten;
		free(source);
	}
}

/* The expiry is an absolute time, so a late call delays nothing. */
static void arm(struct loop *loop, int64_t at)
{
	struct itimerspec set = { 0 };

	if (at == INT64_MAX)
		at = 0;
	else if (at < 1)
		at = 1;
	if (at == loop->armed)
		return;
	set.it_value.tv_sec = (time_t)(at / 1000000000);
	set.it_value.tv_nsec = (long)(at % 1000000000);
	timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &set, NULL);
	loop->armed = at;
}

static void serve(struct loop *loop, const struct epoll_event *event, bool urgent)
{
	struct source *source = event->data.ptr;
	uint64_t expirations;

	if (!source) {
		if (!urgent && read(loop->timer, &expirations, sizeof expirations) > 0)
			loop->armed = 0;
	} else if (source->fd >= 0 && source->urgent == urgent) {
		source->ready(source, event->events);
	}
}

/* Tells why heartbeats of this node come late: this process had no processor, or a handler took long. */
static void tell_if_late(const char *what, int64_t since, int64_t now)
{
	int64_t ms = (now - since) / NS_PER_MS;

	if (ms >= LATE_MS)
		log_line("warn", what, ",\"ms\":%" PRId64, ms);
}

int loop_run(struct loop *loop, int64_t (*due)(void *context, int64_t now), void *context)
{
	struct epoll_event events[EVENTS];
	int64_t began = monotonic_ns();

	while (!loop->ended) {
		int count;

		arm(loop, due(context, monotonic_ns()));
		free_forgotten(loop);
		tell_if_late("the loop was busy", began, monotonic_ns());
		if (loop->ended)
			break;
		count = epoll_wait(loop->epoll, events, EVENTS, -1);
		if (count < 0 && errno != EINTR)
			return -1;
		began = monotonic_ns();
		if (loop->armed)
			tell_if_late("the loop woke late", loop->armed, began);
		for (int i = 0; i < count; i++)
			serve(loop, &events[i], true);
		for (int i = 0; i < count; i++)
			serve(loop, &events[i], false);
	}
	free_forgotten(loop);
	return 0;
}
