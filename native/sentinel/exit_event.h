/*
 * Hears of the first thread of a process as it begins to end, by the kernel's trace of such ends (perf). It serves where taskstats does not
 * (exits.h): in a pid namespace, such as that of a node of kind. Since Linux 6.16 the trace comes before the kernel frees the memory, and in
 * earlier kernels after that, but before it closes the sockets.
 */
#ifndef EXIT_EVENT_H
#define EXIT_EVENT_H

#include "sentinel.h"

struct exit_event;

/* watch_first_ended() hears of the end, once. Returns NULL if this kernel has no such trace: a log line says so. */
struct exit_event *exit_event_begin(struct sentinel *sentinel, pid_t pid);

/* Frees it; NULL: does nothing. */
void exit_event_end(struct exit_event *event);

#endif
