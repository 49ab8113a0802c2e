/*
 * Hears of a process that begins to end (taskstats). Before its descriptor tells, the kernel frees its memory, some 0.1 s for each GB,
 * and clients wait in queues that no process reads any more.
 */
#ifndef EXITS_H
#define EXITS_H

#include "sentinel.h"

/*
 * Call it when the watched processes have changed: watch_exiting() hears of the ends of these. Only a sentinel in the first pid namespace
 * of the machine may ask for that, and not every kernel has it: then a log line says so, and exit_event.h has to do.
 */
void exits_follow(struct sentinel *sentinel);

#endif
