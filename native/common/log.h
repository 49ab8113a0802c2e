#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Size limit of the log file. A larger file is renamed to FILE.1, replacing an older one, and a new file begins. */
enum { LOG_BYTES = 512 * 1024 };

/* Sends log lines to this file from now on, instead of standard error. False with errno if it cannot open the file. */
bool log_open(const char *path);

/*
 * Writes one JSON line: level, time (ms since 1970) and msg, then `members` (a printf format that begins with a comma,
 * e.g. ",\"port\":%d"). Pass strings through log_safe() unless they need no escaping. If the
 * reader has stopped, the line is lost: no program may block on its log.
 */
void log_line(const char *level, const char *msg, const char *members, ...)
	__attribute__((format(printf, 3, 4)));

/* Logs that `what` failed with errno `error`. */
void log_failure(const char *what, int error);

/* Returns `text` with every byte replaced that JSON would escape, cut to 255 bytes. Valid until the next call. */
const char *log_safe(const char *text);

#endif
