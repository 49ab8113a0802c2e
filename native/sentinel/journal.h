/*
 * Records each process before the sentinel stops it. If the sentinel is killed, the next one reads the record and
 * resumes these processes.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

/*
 * Reads the record that an earlier sentinel left at this socket; journal_due() resumes those processes. False with
 * errno.
 */
bool journal_open(const char *socket);

/* Records a process. Call it before stopping the process. */
void journal_note(struct process process);

/* Empties the record: no process is stopped any more. */
void journal_clear(void);

/* Drops a process of the earlier sentinel, because a new stop covers it now and has its own end. */
void journal_leave(pid_t pid);

/* Resumes the processes of an earlier sentinel. Returns the time of the next call. */
int64_t journal_due(int64_t now);

#endif
