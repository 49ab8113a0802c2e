#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_RUNNING = 3 };

/* The log file may grow to this size; then it is renamed to FILE.1 (replacing an older one) and begun anew. */
enum { LOG_BYTES = 512 * 1024 };

/* From now on lines go to this file; before, to standard error. False with errno when it cannot be opened. */
bool log_open(const char *path);

/*
 * Writes one JSON line: level, time (ms since 1970) and msg, then `members` (a printf format that begins with a comma,
 * e.g. ",\"port\":%d"). Strings among the values must have gone through log_safe() unless they need no escaping.
 */
void log_line(const char *level, const char *msg, const char *members, ...)
	__attribute__((format(printf, 3, 4)));

/* Logs that `what` failed because of errno `error`. */
void log_failure(const char *what, int error);

/* `text` without anything that JSON would have to escape, cut to 255 bytes. Valid until the next call. */
const char *log_safe(const char *text);

#endif
