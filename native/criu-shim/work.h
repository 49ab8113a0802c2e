/* Signals by files in CRIU's work directory, which is open as 202. */
#pragma once

#include "calls.h"
#include "descriptors.h"

enum { O_WRITE_NEW = 01 | 0100 | O_CLOSE_ON_EXEC, O_NOT_THERE = 0200 };

/* From the C library, which this library does not link to. */
extern int on_exit(void (*function)(int status, void *argument), void *argument) __attribute__((weak));

/* Call it before the first image is opened. Does nothing but in the server of a lazy restore. */
void images_are_read(void);

static inline long own_pid(void)
{
	return raw(NR_getpid, 0, 0, 0, 0, 0, 0);
}

static inline void pause_for(long nanoseconds)
{
	const long moment[2] = { 0, nanoseconds };

	raw(NR_nanosleep, (long)moment, 0, 0, 0, 0, 0);
}

static inline int is_there(const char *name)
{
	return raw(NR_faccessat, FD_WORK, (long)name, 0, 0, 0, 0) == 0;
}

static inline int make(const char *name, long more)
{
	long fd = raw(NR_openat, FD_WORK, (long)name, O_WRITE_NEW | more, 0600, 0, 0);

	if (fd < 0)
		return 0;
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	return 1;
}

/* Zero: it failed. */
static inline int say(const char *name)
{
	return make(name, 0);
}

/* Zero also if another process has created the file before. */
static inline int say_first(const char *name)
{
	return make(name, O_NOT_THERE);
}
