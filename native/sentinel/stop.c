/* Long because all verbs of a stop share its table and its life cycle. */
#include "stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_procs.h"
#include "clock.h"
#include "halt.h"
#include "journal.h"
#include "log.h"
#include "number.h"
#include "spawn.h"

enum {
	/* A signal takes a moment to reach other processors; an uninterruptible wait can last any time. */
	SETTLE_NS = 250 * NS_PER_MS,
};

/* EXPIRED: resumed at the deadline. DONE: resumed when the work was done for which they were stopped. */
enum stop_state { STOP_SETTLING, STOP_HELD, STOP_EXPIRED, STOP_DONE };

struct stop {
	struct stop *next;
	enum stop_state state;
	struct asker asker;
	bool kept; /* the stop outlives its connection and lasts until the deadline */
	char *name;
	char **gates; /* ends with NULL; files to create when all processes have stopped */
	char **unless; /* ends with NULL; files whose existence means that the client has more work to do */
	char **empty; /* ends with NULL; directories that must be empty, because no dump saves their files */
	size_t awaited; /* number of spawns after which the processes resume automatically; 0: never */
	bool by_hand; /* some of the work went wrong, so the client decides when to resume */
	struct processes ending; /* processes to check for a pending SIGTERM */
	struct halt halt;
	int64_t deadline, settle_until, ended;
};

static struct stop *find(struct sentinel *sentinel, const char *name)
{
	for (struct stop *stop = sentinel->stops; stop; stop = stop->next)
		if (strcmp(stop->name, name) == 0)
			return stop;
	return NULL;
}

static void forget(struct sentinel *sentinel, struct stop *stop)
{
	for (struct stop **at = &sentinel->stops; *at; at = &(*at)->next)
		if (*at == stop) {
			*at = stop->next;
			break;
		}
	free(stop->name);
	list_free(stop->gates);
	list_free(stop->unless);
	list_free(stop->empty);
	processes_free(&stop->ending);
	halt_end(&stop->halt);
	list_free(stop->halt.cgroups);
	free(stop);
}

static void let_go(struct stop *stop)
{
	/* All spawns of the stop have ended: another program stopped the processes that are stopped now. */
	if (stop->state == STOP_DONE)
		return;
	halt_release(&stop->halt);
	if (stop->state != STOP_EXPIRED)
		stop->ended = monotonic_ns();
}

/*
 * A process that waits to work on the stopped processes starts without a message from the client. On a busy node that
 * message costs one more wait for a processor, during which the application is stopped. The client can still create a
 * file that we cannot.
 */
static void open_gates(const struct stop *stop)
{
	for (size_t i = 0; stop->gates[i]; i++) {
		int fd = open(stop->gates[i], O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd >= 0)
			close(fd);
		else
			log_line("warn", "a gate was not opened", ",\"errno\":%d", errno);
	}
}

static void settled(struct sentinel *sentinel, struct stop *stop)
{
	struct message message;

	stop->state = STOP_HELD;
	message_begin(&message, stop->asker.id, "stopped");
	message_number(&message, "count", (int64_t)stop->halt.signalled);
	message_number(&message, "skew_us", (stop->halt.last - stop->halt.began) / NS_PER_US);
	message_number(&message, "unsettled", (int64_t)halt_running(&stop->halt));
	message_end(&message);
	client_send_to_asker(sentinel, &stop->asker, &message);
}

static bool is_over(const struct stop *stop)
{
	return stop->state == STOP_EXPIRED || stop->state == STOP_DONE;
}

bool stops_hold(const struct sentinel *sentinel)
{
	for (const struct stop *stop = sentinel->stops; stop; stop = stop->next)
		if (!is_over(stop))
			return true;
	return false;
}

static bool is_any_there(char *const *paths)
{
	for (; *paths; paths++)
		if (access(*paths, F_OK) == 0)
			return true;
	return false;
}

/* An unreadable directory counts as not empty. */
static bool is_empty(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	bool empty;

	if (!directory)
		return false;
	do {
		errno = 0;
		entry = readdir(directory);
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	empty = !entry && errno == 0;
	closedir(directory);
	return empty;
}

static bool are_empty(char *const *paths)
{
	for (; *paths; paths++)
		if (!is_empty(*paths))
			return false;
	return true;
}

/*
 * A restore of a process that is about to terminate would revive it. So the client has to see the pending signal before
 * it takes effect.
 */
static bool is_any_told_to_end(const struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		if (process_has_pending(processes->list[i].pid, SIGTERM))
			return true;
	return false;
}

void stop_work_ended(struct sentinel *sentinel, uint64_t serial, const char *name, bool well)
{
	struct stop *stop = find(sentinel, name);

	if (!stop || stop->asker.serial != serial || stop->awaited == 0)
		return;
	stop->by_hand |= !well;
	if (--stop->awaited > 0 || stop->by_hand || stop->state != STOP_HELD || is_any_there(stop->unless) ||
	    !are_empty(stop->empty) || is_any_told_to_end(&stop->ending))
		return;
	let_go(stop);
	stop->state = STOP_DONE;
	halt_end(&stop->halt);
}

static bool read_pids(const struct request *request, const char *key, struct processes *set)
{
	for (size_t i = 0; i < request->count; i++) {
		int64_t pid;

		if (strcmp(request->fields[i].key, key) != 0)
			continue;
		if (!parse_number(request->fields[i].value, PID_MAX, &pid) || pid == 0 ||
		    !processes_add(set, (struct process){ .pid = (pid_t)pid }))
			return false;
	}
	return true;
}

/* Takes a list that may be NULL. */
static bool are_absolute(char *const *paths)
{
	for (; paths && *paths; paths++)
		if (**paths != '/')
			return false;
	return true;
}

static size_t count_of(const struct stop *stop)
{
	size_t count = 0;

	for (; stop; stop = stop->next)
		count++;
	return count;
}

void stop_verb(struct client *client, const struct request *request)
{
	struct sentinel *sentinel = client->sentinel;
	const char *name = request_value(request, "name"), *after = request_value(request, "after"), *wrong = NULL;
	struct stop *stop = find(sentinel, name);
	int64_t deadline_ms, awaited = 0;
	bool complete;
	int error;

	if (stop && is_over(stop)) {
		forget(sentinel, stop);
		stop = NULL;
	}
	/*
	 * A spawn of another connection for this stop: that connection was lost between its spawns and this request. The
	 * spawn would find its gate open, and this client, which has heard that its spawns are lost, would resume the
	 * processes while it works on them.
	 */
	if (stop || count_of(sentinel->stops) >= STOPS_MAX || spawns_of_others_during(sentinel, client->serial, name)) {
		client_reply(client, request, "refused", "busy");
		return;
	}
	if (!parse_number(request_value(request, "deadline"), DEADLINE_MS_MAX, &deadline_ms) || deadline_ms == 0) {
		client_reply(client, request, "refused", "bad-deadline");
		return;
	}
	if (after && (!parse_number(after, SPAWNS_MAX, &awaited) || awaited == 0)) {
		client_reply(client, request, "refused", "bad-after");
		return;
	}
	stop = calloc(1, sizeof *stop);
	if (!stop) {
		client_reply_error(client, request, "stop", ENOMEM);
		return;
	}
	stop->next = sentinel->stops;
	sentinel->stops = stop;
	halt_begin(sentinel, &stop->halt);
	stop->name = strdup(name);
	stop->asker = asker_of(client, request);
	stop->halt.cgroups = request_list(request, "cgroup");
	stop->gates = request_list(request, "go");
	stop->unless = request_list(request, "unless");
	stop->empty = request_list(request, "empty");
	stop->awaited = (size_t)awaited;
	/* A spawn that has ended already cannot have done its work. */
	stop->by_hand = spawns_during(sentinel, client->serial, name) != stop->awaited;
	for (size_t i = 0; stop->halt.cgroups && stop->halt.cgroups[i]; i++)
		if (!cgroup_path_is_inside(stop->halt.cgroups[i]))
			wrong = "bad-cgroup";
	if (!are_absolute(stop->gates))
		wrong = "bad-go";
	if (!are_absolute(stop->unless))
		wrong = "bad-unless";
	if (!are_absolute(stop->empty))
		wrong = "bad-empty";
	if (!read_pids(request, "exclude", &stop->halt.excluded))
		wrong = "bad-exclude";
	if (!read_pids(request, "ending", &stop->ending))
		wrong = "bad-ending";
	if (wrong || !stop->name || !stop->halt.cgroups || !stop->gates || !stop->unless || !stop->empty) {
		forget(sentinel, stop);
		client_reply(client, request, "refused", wrong ? wrong : "memory");
		return;
	}
	/* A dump would not save what the primary does, but what it was stopped in. */
	if (halts_fence_any(sentinel, stop->halt.cgroups)) {
		forget(sentinel, stop);
		client_reply(client, request, "refused", "fenced");
		return;
	}
	stop->halt.began = stop->halt.last = monotonic_ns();
	awake_while(&sentinel->awake, true, stop->halt.began);
	error = halt_more(&stop->halt, &complete);
	if (error) {
		let_go(stop);
		forget(sentinel, stop);
		if (error == EBUSY)
			client_reply(client, request, "refused", "traced");
		else
			client_reply_error(client, request, "cgroup", error == ESRCH ? ENOENT : error);
		return;
	}
	stop->deadline = stop->halt.began + deadline_ms * NS_PER_MS;
	stop->settle_until = stop->halt.began + SETTLE_NS;
	if (complete) {
		open_gates(stop);
		settled(sentinel, stop);
	}
}

void continue_verb(struct client *client, const struct request *request)
{
	struct sentinel *sentinel = client->sentinel;
	struct stop *stop = find(sentinel, request_value(request, "name"));
	struct message message;
	bool at_work;

	if (!stop) {
		client_reply(client, request, "refused", "unknown-name");
		return;
	}
	if (stop->state == STOP_SETTLING)
		settled(sentinel, stop);
	/*
	 * This client speaks for another one whose connection is closed, or about to be. The spawns of that connection
	 * may still work on these processes; spawn_ended() resumes them after the last one.
	 */
	at_work = stop->state != STOP_DONE && stop->asker.serial != client->serial &&
		  spawns_of(sentinel, stop->asker.serial);
	if (!at_work)
		let_go(stop);
	message_begin(&message, request->id, "continued");
	message_number(&message, "held_us", ((stop->ended ? stop->ended : monotonic_ns()) - stop->halt.began) / NS_PER_US);
	message_number(&message, "expired", stop->state == STOP_EXPIRED);
	message_end(&message);
	if (!at_work)
		forget(sentinel, stop);
	client_send(client, &message);
}

void keep_verb(struct client *client, const struct request *request)
{
	struct stop *stop = find(client->sentinel, request_value(request, "name"));
	int64_t deadline_ms;

	if (!stop || is_over(stop))
		client_reply(client, request, "absent", NULL);
	else if (!parse_number(request_value(request, "deadline"), DEADLINE_MS_MAX, &deadline_ms) || deadline_ms == 0)
		client_reply(client, request, "refused", "bad-deadline");
	else {
		stop->kept = true;
		stop->deadline = monotonic_ns() + deadline_ms * NS_PER_MS;
		/* Without the record the next sentinel would resume what an operator counts on. */
		if (halt_keep(&stop->halt, stop->name, stop->deadline))
			client_reply(client, request, "kept", NULL);
		else
			client_reply_error(client, request, "journal", EIO);
	}
}

void stop_state_verb(struct client *client, const struct request *request)
{
	static const char *const words[] = { "held", "held", "expired", "done" };
	const struct stop *stop = find(client->sentinel, request_value(request, "name"));

	if (stop)
		client_reply(client, request, words[stop->state], NULL);
	else
		client_reply(client, request, "refused", "unknown-name");
}

void stops_continue_of(struct sentinel *sentinel, uint64_t serial)
{
	struct stop *next;

	for (struct stop *stop = sentinel->stops; stop; stop = next) {
		next = stop->next;
		/* A kept stop outlasts its connection, and before its end also the sentinel. */
		if ((serial && stop->asker.serial != serial) || (stop->kept && (serial || !is_over(stop))))
			continue;
		let_go(stop);
		if (!is_over(stop))
			log_line("warn", "continued what a lost connection had stopped", ",\"name\":\"%s\",\"count\":%zu",
				 log_safe(stop->name), stop->halt.signalled);
		forget(sentinel, stop);
	}
}

void stops_continue_all(struct sentinel *sentinel)
{
	stops_continue_of(sentinel, 0);
}

void stops_end_all(struct sentinel *sentinel)
{
	for (struct stop *stop = sentinel->stops; stop; stop = stop->next)
		stop->kept = false;
	stops_continue_all(sentinel);
}

/* Returns the stop of this name, which an earlier sentinel has begun. NULL: there is no memory. */
static struct stop *recovered(struct sentinel *sentinel, const char *name, int64_t until)
{
	struct stop *stop = find(sentinel, name);

	if (stop)
		return stop;
	stop = calloc(1, sizeof *stop);
	if (!stop)
		return NULL;
	stop->name = strdup(name);
	if (!stop->name) {
		free(stop);
		return NULL;
	}
	stop->next = sentinel->stops;
	sentinel->stops = stop;
	halt_begin(sentinel, &stop->halt);
	stop->state = STOP_HELD;
	stop->kept = true;
	stop->deadline = stop->halt.until = until;
	stop->halt.kept = stop->name;
	stop->halt.recovered = true;
	return stop;
}

void stops_recover(struct sentinel *sentinel)
{
	char name[NAME_BYTES];
	struct process process;
	int64_t until;

	while (journal_take_kept(&process, &until, name, sizeof name)) {
		struct stop *stop = recovered(sentinel, name, until);

		/* Without memory this process resumes at once. */
		if (!stop || !processes_add(&stop->halt.stopped, process))
			journal_leave(process);
	}
}

int64_t stops_due(struct sentinel *sentinel, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct stop *stop = sentinel->stops; stop; stop = stop->next) {
		bool complete = true;

		/*
		 * A cgroup that is removed by now had no processes left. The gate makes the spawn wait for a process
		 * that is traced by now.
		 */
		if (stop->state == STOP_SETTLING && (halt_more(&stop->halt, &complete) != 0 || complete || now >= stop->settle_until)) {
			open_gates(stop);
			settled(sentinel, stop);
		}
		if (!is_over(stop) && now >= stop->deadline) {
			/*
			 * The client waits for a reply. The gates stay closed, because no process is stopped any more.
			 */
			if (stop->state == STOP_SETTLING)
				settled(sentinel, stop);
			let_go(stop);
			stop->state = STOP_EXPIRED;
			log_line("warn", "continued what was stopped for too long", ",\"name\":\"%s\",\"count\":%zu",
				 log_safe(stop->name), stop->halt.signalled);
		}
		if (stop->state == STOP_SETTLING) {
			int64_t tick = halt_tick(&stop->halt, now);

			if (now + tick < next)
				next = now + tick;
		}
		if (!is_over(stop) && stop->deadline < next)
			next = stop->deadline;
	}
	return next;
}
