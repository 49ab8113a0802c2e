#ifndef LOG_H
#define LOG_H

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/*
 * Writes one JSON line to standard error: level, time (ms since 1970) and msg, then `members` (a printf format that
 * begins with a comma, e.g. ",\"port\":%d"). Values must need no escaping. If the reader has stopped, the line is lost:
 * PID 1 must not block on its log.
 */
void log_line(const char *level, const char *msg, const char *members, ...)
	__attribute__((format(printf, 3, 4)));

/* Logs that `what` failed with errno `error`. */
void log_failure(const char *what, int error);

#endif
