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
#include "journal.h"
#include "log.h"
#include "number.h"
#include "spawn.h"

enum {
	/* A stop takes a moment on other processors; a process in an uninterruptible wait takes as long as that. */
	SETTLE_NS = 250 * NS_PER_MS,
	/* Most stand within the first ones. */
	SHORT_TICK_NS = NS_PER_MS / 10,
	SHORT_TICKS_NS = 2 * NS_PER_MS,
	TICK_NS = NS_PER_MS / 2,
	ROUNDS_AT_ONCE = 8,
};

/* Expired: continued at the deadline. Done: continued when the work was done that they stood still for. */
enum stop_state { STOP_SETTLING, STOP_HELD, STOP_EXPIRED, STOP_DONE };

struct stop {
	struct stop *next;
	enum stop_state state;
	struct asker asker;
	bool kept; /* whoever asked may be gone: somebody counts on it until the deadline */
	char *name;
	char **cgroups; /* ends with NULL; relative to /sys/fs/cgroup */
	char **gates; /* ends with NULL; files to be made when everybody stands */
	char **unless; /* ends with NULL; files that say that the work is not all */
	char **empty; /* ends with NULL; directories in which nothing may be, for nobody saves it */
	size_t awaited; /* spawns, before they go on without being told to; 0: they do not */
	bool by_hand; /* something of the work is not as it should be: whoever asked decides */
	struct processes ending; /* to be asked whether they have been told to end */
	struct processes excluded, seen; /* `seen`: also those that were stopped before, start 0 there */
	size_t stopped;
	int64_t deadline, began, last, settle_until, ended;
};

static struct stop *find(struct sentinel *sentinel, const char *name)
{
	for (struct stop *stop = sentinel->stops; stop; stop = stop->next)
		if (strcmp(stop->name, name) == 0)
			return stop;
	return NULL;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static void forget(struct sentinel *sentinel, struct stop *stop)
{
	for (struct stop **at = &sentinel->stops; *at; at = &(*at)->next)
		if (*at == stop) {
			*at = stop->next;
			break;
		}
	free(stop->name);
	free_list(stop->cgroups);
	free_list(stop->gates);
	free_list(stop->unless);
	free_list(stop->empty);
	processes_free(&stop->ending);
	processes_free(&stop->excluded);
	processes_free(&stop->seen);
	free(stop);
	if (!sentinel->stops)
		journal_clear();
}

static void tell_to_stop(struct stop *stop, struct process process)
{
	int64_t now = monotonic_ns();

	if (process_signal(process, SIGSTOP) != 0)
		return;
	if (stop->stopped++ == 0)
		stop->began = now;
	stop->last = now;
}

/* Called for each process of a round. False with E2BIG when there are too many, with EBUSY at one that is not to be disturbed. */
static bool meet(void *context, pid_t pid)
{
	struct stop *stop = context;
	struct process_stat stat;
	struct process process;

	if (processes_have(&stop->excluded, pid) || processes_have(&stop->seen, pid) || !process_stat(pid, &stat) ||
	    stat.state == 'Z' || stat.state == 'X')
		return true;
	/*
	 * The CRIU of a sentinel that died may still be at work on it. The kernel would hand a signal to that, which takes one that
	 * it has not sent itself for the end of the process, and leaves its own code in it.
	 */
	if (stat.state == 't') {
		errno = EBUSY;
		return false;
	}
	process = (struct process){ .pid = pid, .start = stat.start };
	journal_leave(pid);
	/* Whoever was stopped before, by somebody else and for a reason of theirs, is not ours to continue. */
	if (stat.state == 'T')
		process.start = 0;
	if (!processes_add(&stop->seen, process)) {
		errno = E2BIG;
		return false;
	}
	if (process.start) {
		journal_note(process);
		tell_to_stop(stop, process);
	}
	return true;
}

static size_t still_running(const struct stop *stop)
{
	size_t running = 0;

	for (size_t i = 0; i < stop->seen.count; i++)
		running += stop->seen.list[i].start && !process_stopped(stop->seen.list[i]);
	return running;
}

/*
 * Some rounds, until one has met nobody new although everybody met before had come to a stand. That they have been told
 * to is not enough: one that is in the middle of a fork stops after it, and its child is not there yet. 0 or an errno.
 */
static int stop_more(struct stop *stop, bool *complete)
{
	*complete = false;
	for (int round = 0; round < ROUNDS_AT_ONCE && !*complete; round++) {
		bool standing = still_running(stop) == 0;
		size_t before = stop->seen.count;

		for (size_t i = 0; stop->cgroups[i]; i++)
			if (!cgroup_each(stop->cgroups[i], meet, stop))
				return errno;
		*complete = standing && stop->seen.count == before;
	}
	return 0;
}

/*
 * Also when that has been done before: a CRIU that found a task stopped leaves it stopped when it is done with it, even if
 * it was continued in the meantime.
 */
static void let_go(struct stop *stop)
{
	/* Whoever worked on them has ended: who stands by now was stopped by somebody else. */
	if (stop->state == STOP_DONE)
		return;
	/* The last one first: a parent should not see its children late. */
	for (size_t i = stop->seen.count; i-- > 0;)
		if (stop->seen.list[i].start)
			process_signal(stop->seen.list[i], SIGCONT);
	if (stop->state != STOP_EXPIRED)
		stop->ended = monotonic_ns();
}

/*
 * Whoever waits to work on what is stopped goes ahead without the client's having to be told first: on a busy node that
 * is a wait for a processor more, in which an application stands still. What cannot be made the client still can.
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
	message_number(&message, "count", (int64_t)stop->stopped);
	message_number(&message, "skew_us", (stop->last - stop->began) / NS_PER_US);
	message_number(&message, "unsettled", (int64_t)still_running(stop));
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

/* What cannot be read is not empty. */
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

/* Memory of one that is ending would bring back what was to go: whoever asked has to know before it does. */
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

/* The values of a key; NULL when memory is short. */
static char **read_list(const struct request *request, const char *key)
{
	char **list = calloc(request->count + 1, sizeof *list);
	size_t count = 0;

	for (size_t i = 0; list && i < request->count; i++)
		if (strcmp(request->fields[i].key, key) == 0 && !(list[count++] = strdup(request->fields[i].value))) {
			free_list(list);
			return NULL;
		}
	return list;
}

/* Of a list that may be NULL. */
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
	if (stop || count_of(sentinel->stops) >= STOPS_MAX) {
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
	stop->name = strdup(name);
	stop->asker = asker_of(client, request);
	stop->cgroups = read_list(request, "cgroup");
	stop->gates = read_list(request, "go");
	stop->unless = read_list(request, "unless");
	stop->empty = read_list(request, "empty");
	stop->awaited = (size_t)awaited;
	/* What has ended already has not done what it was started for. */
	stop->by_hand = spawns_during(sentinel, client->serial, name) != stop->awaited;
	for (size_t i = 0; stop->cgroups && stop->cgroups[i]; i++)
		if (!cgroup_path_is_inside(stop->cgroups[i]))
			wrong = "bad-cgroup";
	if (!are_absolute(stop->gates))
		wrong = "bad-go";
	if (!are_absolute(stop->unless))
		wrong = "bad-unless";
	if (!are_absolute(stop->empty))
		wrong = "bad-empty";
	if (!read_pids(request, "exclude", &stop->excluded))
		wrong = "bad-exclude";
	if (!read_pids(request, "ending", &stop->ending))
		wrong = "bad-ending";
	if (wrong || !stop->name || !stop->cgroups || !stop->gates || !stop->unless || !stop->empty) {
		forget(sentinel, stop);
		client_reply(client, request, "refused", wrong ? wrong : "memory");
		return;
	}
	stop->began = stop->last = monotonic_ns();
	awake_while(&sentinel->awake, true, stop->began);
	error = stop_more(stop, &complete);
	if (error) {
		let_go(stop);
		forget(sentinel, stop);
		if (error == EBUSY)
			client_reply(client, request, "refused", "traced");
		else
			client_reply_error(client, request, "cgroup", error == ESRCH ? ENOENT : error);
		return;
	}
	stop->deadline = stop->began + deadline_ms * NS_PER_MS;
	stop->settle_until = stop->began + SETTLE_NS;
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
	 * Somebody else speaks for who is gone, or will be seen to be in a moment: what that one has started may be at work
	 * on these processes, and continues them when it has ended; see spawn_ended().
	 */
	at_work = stop->state != STOP_DONE && stop->asker.serial != client->serial &&
		  spawns_of(sentinel, stop->asker.serial);
	if (!at_work)
		let_go(stop);
	message_begin(&message, request->id, "continued");
	message_number(&message, "held_us", ((stop->ended ? stop->ended : monotonic_ns()) - stop->began) / NS_PER_US);
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
		client_reply(client, request, "kept", NULL);
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
		if (serial && (stop->asker.serial != serial || stop->kept))
			continue;
		let_go(stop);
		if (!is_over(stop))
			log_line("warn", "continued what a lost connection had stopped", ",\"name\":\"%s\",\"count\":%zu",
				 log_safe(stop->name), stop->stopped);
		forget(sentinel, stop);
	}
}

void stops_continue_all(struct sentinel *sentinel)
{
	stops_continue_of(sentinel, 0);
}

int64_t stops_due(struct sentinel *sentinel, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct stop *stop = sentinel->stops; stop; stop = stop->next) {
		bool complete = true;

		/* A cgroup that is gone by now had nobody left in it; whoever is being traced by now is waited for at the gate. */
		if (stop->state == STOP_SETTLING && (stop_more(stop, &complete) != 0 || complete || now >= stop->settle_until)) {
			open_gates(stop);
			settled(sentinel, stop);
		}
		if (!is_over(stop) && now >= stop->deadline) {
			/* Whoever asked waits for an answer. Gates stay closed: nobody stands any more. */
			if (stop->state == STOP_SETTLING)
				settled(sentinel, stop);
			let_go(stop);
			stop->state = STOP_EXPIRED;
			log_line("warn", "continued what was stopped for too long", ",\"name\":\"%s\",\"count\":%zu",
				 log_safe(stop->name), stop->stopped);
		}
		if (stop->state == STOP_SETTLING) {
			int64_t tick = now - stop->began < SHORT_TICKS_NS ? SHORT_TICK_NS : TICK_NS;

			if (now + tick < next)
				next = now + tick;
		}
		if (!is_over(stop) && stop->deadline < next)
			next = stop->deadline;
	}
	return next;
}
