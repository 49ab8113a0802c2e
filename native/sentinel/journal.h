/*
 * Records each process before the sentinel stops it. If the sentinel is killed, the next one reads the record and
 * resumes these processes, unless they belong to a stop that is kept: an operator counts on that one until its time is over.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process.h"

struct sentinel;

/*
 * Reads the record that an earlier sentinel left at this socket; journal_due() resumes those processes. False with
 * errno.
 */
bool journal_open(const char *socket);

/* Records a process. Call it before stopping the process. `fence`: a primary that may not serve. */
void journal_note(struct process process, bool fence);

/* Records a process of a stop that is kept until this time of the monotonic clock. */
void journal_note_kept(struct process process, int64_t until, const char *name);

/*
 * Takes a process of a stop that an earlier sentinel has promised to keep, in the order in which they were recorded: halt_release() needs
 * it. `name` has `size` bytes. False if there is none left.
 */
bool journal_take_kept(struct process *process, int64_t *until, char *name, size_t size);

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
 * complete or not at all. Both return false if that is not possible; the record stays as it is then.
 */
bool journal_begin(void);
bool journal_end(void);

/*
 * Drops a process of the earlier sentinel, because a new stop or fence covers it now and has its own end. False if it is none, or
 * one that waits for a fence.
 */
bool journal_take(struct process process, bool fence);

/* Takes a process that a tracer holds; journal_due() resumes it when the tracer has detached. */
void journal_leave(struct process process);

/* True if processes of an earlier sentinel still have to resume. */
bool journal_has_left(void);

/* True if the process stays stopped until a fence takes it: see journal_hold(). */
bool journal_waits(struct process process);

/* Resumes the processes of an earlier sentinel that no halt has. Returns the time of the next call. */
int64_t journal_due(const struct sentinel *sentinel, int64_t now);

#endif
