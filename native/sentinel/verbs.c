#include "verbs.h"

#include <string.h>
#include <unistd.h>

#include "killing.h"
#include "number.h"
#include "spawn.h"
#include "stop.h"
#include "strangers.h"
#include "voting.h"
#include "watch.h"

static void hello(struct client *client, const struct request *request)
{
	struct message message;

	message_begin(&message, request->id, "ok");
	message_text(&message, "version", UNDERSTUDY_VERSION);
	message_number(&message, "pid", getpid());
	message_number(&message, "started_unix_ns", client->sentinel->started_unix_ns);
	message_end(&message);
	client_send(client, &message);
}

static const struct verb {
	const char *name, *keys; /* see request_check() */
	void (*run)(struct client *client, const struct request *request);
} verbs[] = {
	{ "hello", "", hello },
	{ "spawn", "target! start! ns! cgroup! deadline! log? detach? during? fd#* env* arg+", spawn_verb },
	{ "kill-spawn", "spawn!", kill_spawn_verb },
	{ "stop", "name! deadline! cgroup+ exclude* go* after? unless* empty* ending*", stop_verb },
	{ "continue", "name!", continue_verb },
	{ "keep", "name! deadline!", keep_verb },
	{ "stop-state", "name!", stop_state_verb },
	{ "watch", "name! pid! start!", watch_verb },
	{ "unwatch", "name!", unwatch_verb },
	{ "watches", "", watches_verb },
	{ "grave", "name! netns? start? heir! lasts?", grave_verb },
	{ "bury", "name!", bury_verb },
	{ "exhume", "name!", exhume_verb },
	{ "strangers", "netns! start! from*", strangers_verb },
	{ "tree-kill", "pid! start!", tree_kill_verb },
	{ "tree-continue", "pid! start!", tree_continue_verb },
	{ "heartbeats", "port!", heartbeats_verb },
	{ "peer", "name! address! port! run! key!", peer_verb },
	{ "unpeer", "name!", unpeer_verb },
	{ "primary", "name! slot! epoch! version! timeout! voter+ next* netns? start? cgroup* gone?", primary_verb },
	{ "unprimary", "name! shut?", unprimary_verb },
	{ "answered", "name! epoch! run! sent!", answered_verb },
	{ "vote", "slot! epoch! node! run! timeout! deny? refused?", vote_verb },
	{ "unvote", "slot!", unvote_verb },
	{ "votes", "", votes_verb },
};

static const struct verb *find(const char *name)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

void verb_run(struct client *client, const struct request *request)
{
	const struct verb *verb = find(request->verb);
	const char *name = request_value(request, "name"), *wrong;

	if (!verb) {
		client_reply(client, request, "refused", "unknown-verb");
		return;
	}
	wrong = request_check(request, verb->keys);
	if (!wrong && name && (!*name || strlen(name) > NAME_BYTES))
		wrong = "bad-name";
	/* The sentinel still continues, kills and reports running work, but starts none. */
	if (!wrong && client->sentinel->ending && (verb->run == spawn_verb || verb->run == stop_verb))
		wrong = "ending";
	if (wrong)
		client_reply(client, request, "refused", wrong);
	else
		verb->run(client, request);
}

bool verb_process(struct client *client, const struct request *request, const char *pid_key, const char *start_key,
		  struct process *process)
{
	const char *since = request_value(request, start_key);
	int64_t pid, start;

	if (!since) {
		client_reply(client, request, "refused", "missing-start");
		return false;
	}
	if (!parse_number(request_value(request, pid_key), PID_MAX, &pid) || pid == 0) {
		client_reply(client, request, "refused", strcmp(pid_key, "pid") == 0 ? "bad-pid" : strcmp(pid_key, "netns") == 0 ? "bad-netns" : "bad-target");
		return false;
	}
	if (!parse_number(since, INT64_MAX, &start)) {
		client_reply(client, request, "refused", "bad-start");
		return false;
	}
	*process = (struct process){ .pid = (pid_t)pid, .start = (uint64_t)start };
	return true;
}
