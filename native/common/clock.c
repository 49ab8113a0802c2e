#include "clock.h"

#include <time.h>

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t monotonic_ns(void)
{
	return now(CLOCK_MONOTONIC);
}

int64_t monotonic_ms(void)
{
	return monotonic_ns() / NS_PER_MS;
}

int64_t unix_ns(void)
{
	return now(CLOCK_REALTIME);
}
