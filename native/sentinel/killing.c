#include "killing.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "clock.h"
#include "halt.h"
#include "tree.h"
#include "verbs.h"

enum { TICK_NS = NS_PER_MS / 2, STOP_MS = 100, LIMIT_MS = 10000 };

struct killing {
	struct killing *next;
	struct asker asker;
	struct processes victims;
	bool killed; /* killed, not only stopped */
	int64_t began;
};

/* False after a refusal. */
static bool collect(struct client *client, const struct request *request, int signal, struct processes *set)
{
	struct process root;

	if (!verb_process(client, request, "pid", "start", &root))
		return false;
	if (tree_holds_self(root.pid)) {
		client_reply(client, request, "refused", "own-tree");
		return false;
	}
	if (!tree_collect(root, signal, set)) {
		int error = errno;

		/* Resume the processes that this call has stopped. */
		for (size_t i = set->count; i-- > 0;)
			halts_resume(client->sentinel, set->list[i]);
		processes_free(set);
		client_reply_error(client, request, "tree", error);
		return false;
	}
	return true;
}

void tree_kill_verb(struct client *client, const struct request *request)
{
	struct sentinel *sentinel = client->sentinel;
	struct killing *killing = calloc(1, sizeof *killing);

	if (!killing) {
		client_reply_error(client, request, "tree", ENOMEM);
		return;
	}
	/* Stop first: a running process could fork between the search and the kill. */
	if (!collect(client, request, SIGSTOP, &killing->victims)) {
		free(killing);
		return;
	}
	killing->asker = asker_of(client, request);
	killing->began = monotonic_ns();
	killing->next = sentinel->killings;
	sentinel->killings = killing;
}

void tree_continue_verb(struct client *client, const struct request *request)
{
	struct processes set = { 0 };
	struct message message;
	size_t continued = 0;

	if (!collect(client, request, 0, &set))
		return;
	halts_look(client->sentinel);
	/* Children first: a parent that waits for its children finds them running. */
	for (size_t i = set.count; i-- > 0;)
		continued += !halts_fence(client->sentinel, set.list[i]) && process_signal(set.list[i], SIGCONT) == 0;
	processes_free(&set);
	message_begin(&message, request->id, "continued");
	message_number(&message, "count", (int64_t)continued);
	message_end(&message);
	client_send(client, &message);
}

/*
 * Searches once more for children forked before their parent stopped, and kills when no process can be missing or the
 * time is up.
 */
static void strike(struct killing *killing, int64_t now)
{
	bool complete = false;

	if (tree_collect_again(&killing->victims, &complete) && !complete && now < killing->began + (int64_t)STOP_MS * NS_PER_MS)
		return;
	for (size_t i = 0; i < killing->victims.count; i++)
		process_signal(killing->victims.list[i], SIGKILL);
	killing->killed = true;
}

static size_t left_of(const struct processes *victims)
{
	size_t left = 0;

	for (size_t i = 0; i < victims->count; i++)
		left += !process_ended(victims->list[i]);
	return left;
}

static void answer(struct sentinel *sentinel, const struct killing *killing, size_t left, int64_t now)
{
	struct message message;

	message_begin(&message, killing->asker.id, left ? "failed" : "gone");
	if (left)
		message_text(&message, "reason", "killed, but not gone");
	message_number(&message, "count", (int64_t)(killing->victims.count - left));
	message_number(&message, "ms", (now - killing->began) / NS_PER_MS);
	message_end(&message);
	client_send_to_asker(sentinel, &killing->asker, &message);
}

int64_t killings_due(struct sentinel *sentinel, int64_t now)
{
	struct killing **at = &sentinel->killings;

	while (*at) {
		struct killing *killing = *at;
		size_t left;

		if (!killing->killed)
			strike(killing, now);
		left = left_of(&killing->victims);
		if (left && now < killing->began + (int64_t)LIMIT_MS * NS_PER_MS) {
			at = &killing->next;
			continue;
		}
		answer(sentinel, killing, left, now);
		*at = killing->next;
		processes_free(&killing->victims);
		free(killing);
	}
	return sentinel->killings ? now + TICK_NS : INT64_MAX;
}
