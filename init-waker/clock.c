#include "clock.h"

#include <time.h>

static struct timespec now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t;
}

int64_t monotonic_ms(void)
{
	struct timespec t = now(CLOCK_MONOTONIC);

	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t unix_ns(void)
{
	struct timespec t = now(CLOCK_REALTIME);

	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
