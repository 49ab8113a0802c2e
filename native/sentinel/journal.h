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

/* Records a process. Call it before stopping the process. `fence`: a primary that may not serve. */
void journal_note(struct process process, bool fence);

/*
 * Call it when the primaries that the earlier sentinel has fenced are not known any more. The processes that it has stopped for a
 * fence stay stopped then until a fence takes them.
 */
void journal_hold(void);
/* True if there are such processes. */
bool journal_holds(void);

/* Empties the record: no process is stopped any more. False if some of an earlier sentinel still have to resume. */
bool journal_clear(void);

/*
 * Rewrite the record. It has then what the caller notes between these two, and what an earlier sentinel has left. It appears
 * complete or not at all. journal_begin() returns false if that is not possible; the record stays as it is then.
 */
bool journal_begin(void);
void journal_end(void);

/*
 * Drops a process of the earlier sentinel, because a new stop or fence covers it now and has its own end. False if it is none, or
 * one that waits for a fence.
 */
bool journal_take(struct process process, bool fence);

/* Takes a process that a tracer holds; journal_due() resumes it when the tracer has detached. */
void journal_leave(struct process process);

/* True if processes of an earlier sentinel still have to resume. */
bool journal_has_left(void);

/* Resumes the processes of an earlier sentinel. Returns the time of the next call. */
int64_t journal_due(int64_t now);

#endif
