/*
 * Hears of a process that begins to end (taskstats). Before its descriptor tells, the kernel frees its memory, some 0.1 s for each GB,
 * and clients wait in queues that no process reads any more.
 */
#ifndef EXITS_H
#define EXITS_H

#include <stdint.h>

#include "sentinel.h"

/*
 * Calls watch_exiting() from then on if anything is watched, and nothing otherwise: every process of the machine that ends wakes the
 * sentinel. Only a sentinel in the first pid namespace of the machine may ask for that, and not every kernel has it: then a log line
 * says so, and descriptors tell alone.
 */
void exits_follow(struct sentinel *sentinel);

/* Listens again after a pause. Returns the time of its next call. */
int64_t exits_due(struct sentinel *sentinel, int64_t now);

#endif
