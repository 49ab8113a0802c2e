/* The verbs of the sentinel's protocol. */
#ifndef VERBS_H
#define VERBS_H

#include "client.h"

/* Serves a well-formed request. */
void verb_run(struct client *client, const struct request *request);

/* Reads a process from two keys; false after a refusal. */
bool verb_process(struct client *client, const struct request *request, const char *pid_key, const char *start_key,
		  struct process *process);

#endif
