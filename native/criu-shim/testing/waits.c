/*
 * waits: has an event, asks without a wait for another one, which comes a millisecond later, and prints how many of 20 such questions had it.
 * Then it prints the same for questions that follow one without an event. Last it asks 150 times when nothing comes, and as at first again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, IN_VAIN = 150 };

static int epoll, timer;

static void arm(long nanoseconds)
{
	const struct itimerspec once = { .it_value = { .tv_nsec = nanoseconds } };

	if (timerfd_settime(timer, 0, &once, NULL))
		exit(3);
}

static void take(void)
{
	uint64_t count;

	if (read(timer, &count, sizeof count) != sizeof count)
		exit(4);
}

static void have_event(void)
{
	struct epoll_event event;

	arm(1);
	if (epoll_wait(epoll, &event, 1, -1) != 1)
		exit(5);
	take();
}

static int found(int after_event)
{
	struct epoll_event event;
	int sum = 0;

	for (int i = 0; i < ROUNDS; i++) {
		have_event();
		if (!after_event)
			epoll_wait(epoll, &event, 1, 0);
		arm(1000000);
		sum += epoll_wait(epoll, &event, 1, 0);
		take();
	}
	return sum;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int first, without;

	epoll = epoll_create1(0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	if (epoll < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event))
		return 2;
	first = found(1);
	without = found(0);
	for (int i = 0; i < IN_VAIN; i++) {
		have_event();
		epoll_wait(epoll, &event, 1, 0);
	}
	printf("%d %d %d\n", first, without, found(1));
	return 0;
}
