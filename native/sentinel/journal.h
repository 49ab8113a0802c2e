/* Who is stopped, written down before the stop: whoever comes after us, should we be killed, lets them go on. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

/* Reads what an earlier sentinel at this socket left behind, to be continued by journal_due(). False with errno. */
bool journal_open(const char *socket);

/* To be called before the process is stopped. */
void journal_note(struct process process);

/* Nobody is stopped any more. */
void journal_clear(void);

/* Somebody asked to stop this process now: that stop has its own end. */
void journal_leave(pid_t pid);

/* Continues those who were left behind. Returns when it wants to be called again. */
int64_t journal_due(int64_t now);

#endif
