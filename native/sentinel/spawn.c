/* Long because all verbs of a spawn share its table and its life cycle. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "stop.h"
#include "supervisor.h"
#include "tree.h"
#include "verbs.h"

/* Reads the byte of a program that works on stopped processes: see FD_DONE in descriptors.h. */
struct done {
	struct source source;
	struct sentinel *sentinel;
	struct spawn *spawn;
};

struct spawn {
	struct spawn *next;
	struct asker asker;
	char *during; /* name of a stop, or NULL */
	struct done *done; /* NULL without a stop */
	bool is_done; /* the program has reported that its work is done, and the stop no longer waits for it */
	pid_t supervisor;
	int report;
	int64_t began;
	/* Belongs to no client: neither the client's end nor ours ends it, and no client gets its result. */
	bool detached;
};

/* Everything that a job points to, besides strings of the request. */
struct lists {
	char **argv, **env;
	int *fds;
	const char **paths;
	char *modes;
};

static void lists_free(struct lists *lists)
{
	for (size_t i = 0; lists->paths && lists->fds && lists->fds[i] >= 0; i++)
		free((char *)lists->paths[i]);
	free(lists->argv);
	free(lists->env);
	free(lists->fds);
	free(lists->paths);
	free(lists->modes);
}

/* Reads `PATH:r|w|d`; the last colon counts. */
static bool read_fd(const struct field *field, struct lists *lists, size_t at)
{
	const char *colon = strrchr(field->value, ':');
	int64_t number;

	if (!colon || colon == field->value || strlen(colon) != 2 || !strchr("rwd", colon[1]) ||
	    !parse_number(field->key + 2, FD_MAX, &number))
		return false;
	for (size_t i = 0; i < at; i++)
		if (lists->fds[i] == (int)number)
			return false;
	lists->paths[at] = strndup(field->value, (size_t)(colon - field->value));
	if (!lists->paths[at])
		return false;
	lists->modes[at] = colon[1];
	lists->fds[at] = (int)number;
	lists->fds[at + 1] = -1;
	return true;
}

/* Returns NULL, or the error. */
static const char *read_lists(const struct request *request, const char *nsrun, const char *ns, struct lists *lists)
{
	/*
	 * No directory can be created at this path, so a program that looks up a name finds nothing. Otherwise it could
	 * run the container's own files: without the variable the C library searches /bin, and with an empty one the
	 * working directory.
	 */
	static char path[] = "PATH=/proc/none";
	/* Includes the start time: `nsrun` checks it again. */
	static char target[64];
	size_t room = request->count + 8, arguments = 0, variables = 0, descriptors = 0;

	*lists = (struct lists){
		.argv = calloc(room, sizeof *lists->argv),
		.env = calloc(room, sizeof *lists->env),
		.fds = calloc(room, sizeof *lists->fds),
		.paths = calloc(room, sizeof *lists->paths),
		.modes = calloc(room, 1),
	};
	if (!lists->argv || !lists->env || !lists->fds || !lists->paths || !lists->modes)
		return "memory";
	lists->fds[0] = -1;
	lists->env[variables++] = path;
	lists->argv[arguments++] = (char *)nsrun;
	snprintf(target, sizeof target, "%s:%s", request_value(request, "target"), request_value(request, "start"));
	lists->argv[arguments++] = target;
	lists->argv[arguments++] = (char *)ns;
	lists->argv[arguments++] = "--";
	for (size_t i = 0; i < request->count; i++) {
		const struct field *field = &request->fields[i];

		if (strcmp(field->key, "arg") == 0)
			lists->argv[arguments++] = (char *)field->value;
		else if (strcmp(field->key, "env") == 0)
			lists->env[variables++] = (char *)field->value;
		else if (strncmp(field->key, "fd", 2) == 0 && !read_fd(field, lists, descriptors++))
			return "bad-fd";
	}
	return NULL;
}

/* Returns the equal word of a list that ends with NULL, or NULL. */
static const char *one_of(const char *value, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(value, *words) == 0)
			return *words;
	return NULL;
}

static size_t count_of(const struct spawn *spawn)
{
	size_t count = 0;

	for (; spawn; spawn = spawn->next)
		count++;
	return count;
}

static struct spawn *find(struct sentinel *sentinel, uint64_t serial, const char *id)
{
	for (struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (!spawn->detached && spawn->asker.serial == serial && strcmp(spawn->asker.id, id) == 0)
			return spawn;
	return NULL;
}

/* Reports the supervisor's pid and start time: a client that waits for the end of a detached program watches it. */
static void tell_start(struct client *client, const struct request *request, pid_t supervisor)
{
	struct process_stat stat = { 0 };
	struct message message;

	/* Its entry in /proc exists: we reap children only after this request. */
	process_stat(supervisor, &stat);
	message_begin(&message, request->id, "started");
	message_number(&message, "pid", supervisor);
	message_number(&message, "start", (int64_t)stat.start);
	message_end(&message);
	client_send(client, &message);
}

static void spawn_free(struct sentinel *sentinel, struct spawn *spawn)
{
	if (spawn->done)
		loop_forget(&sentinel->loop, &spawn->done->source);
	close(spawn->report);
	free(spawn->during);
	free(spawn);
}

static void done_ready(struct source *source, uint32_t events)
{
	struct done *done = (struct done *)source;
	struct spawn *spawn = done->spawn;
	char byte;

	(void)events;
	if (spawn->is_done || read(source->fd, &byte, 1) != 1) {
		loop_close(&done->sentinel->loop, source);
		return;
	}
	spawn->is_done = true;
	/* Stays open until the program closes it: a program that writes more than a byte must not get SIGPIPE. */
	loop_change(&done->sentinel->loop, source, 0);
	stop_work_ended(done->sentinel, spawn->asker.serial, spawn->during, true);
}

/* Returns the write end; -1 with errno. */
static int open_done(struct sentinel *sentinel, struct spawn *spawn)
{
	struct done *done = calloc(1, sizeof *done);
	int ends[2];

	if (!done || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		free(done);
		return -1;
	}
	*done = (struct done){ .source = { .fd = ends[0], .urgent = true, .ready = done_ready }, .sentinel = sentinel, .spawn = spawn };
	spawn->done = done;
	if (!loop_add(&sentinel->loop, &done->source, EPOLLIN)) {
		close(ends[1]);
		return -1;
	}
	return ends[1];
}

/* Returns 0 or an errno. */
static int start(struct client *client, const struct request *request, struct job *job)
{
	struct sentinel *sentinel = client->sentinel;
	struct spawn *spawn = calloc(1, sizeof *spawn);
	const char *during = request_value(request, "during");
	int report[2], error;

	if (!spawn)
		return ENOMEM;
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
		error = errno;
		free(spawn);
		return error;
	}
	job->report = report[1];
	*spawn = (struct spawn){
		.next = sentinel->spawns,
		.asker = asker_of(client, request),
		.report = report[0],
		.began = monotonic_ns(),
		.detached = request_value(request, "detach") != NULL,
	};
	if (during && (!(spawn->during = strdup(during)) || (job->done = open_done(sentinel, spawn)) < 0)) {
		error = errno;
		close(report[1]);
		spawn_free(sentinel, spawn);
		return error;
	}
	job->deadline_ns += spawn->began;
	spawn->supervisor = fork();
	if (spawn->supervisor == 0)
		supervise(job);
	error = errno;
	close(report[1]);
	if (job->done >= 0)
		close(job->done);
	if (spawn->supervisor < 0) {
		spawn_free(sentinel, spawn);
		return error;
	}
	sentinel->spawns = spawn;
	if (spawn->detached)
		tell_start(client, request, spawn->supervisor);
	return 0;
}

void spawn_verb(struct client *client, const struct request *request)
{
	const struct options *options = client->sentinel->options;
	static const char *const spaces[] = { "keep", "clone", "apart", "host", NULL }, *const groups[] = { "join", "stay", NULL };
	const char *ns = one_of(request_value(request, "ns"), spaces);
	const char *cgroup = one_of(request_value(request, "cgroup"), groups), *wrong = NULL;
	struct process target;
	struct lists lists;
	int64_t deadline_ms;
	const char *detach = request_value(request, "detach");
	int error, pidfd;

	if (!verb_process(client, request, "target", "start", &target))
		return;
	if (detach && strcmp(detach, "1") != 0)
		wrong = "bad-detach";
	else if (!ns)
		wrong = "bad-ns";
	else if (!cgroup)
		wrong = "bad-cgroup";
	else if (!parse_number(request_value(request, "deadline"), DEADLINE_MS_MAX, &deadline_ms) || deadline_ms == 0)
		wrong = "bad-deadline";
	else if (!options->nsrun)
		wrong = "no-nsrun";
	else if (count_of(client->sentinel->spawns) >= SPAWNS_MAX || find(client->sentinel, client->serial, request->id))
		wrong = "busy";
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		return;
	}
	pidfd = process_open(target);
	if (pidfd < 0) {
		client_reply_error(client, request, "target", errno);
		return;
	}
	close(pidfd);
	wrong = read_lists(request, options->nsrun, ns, &lists);
	if (wrong) {
		lists_free(&lists);
		client_reply(client, request, "refused", wrong);
		return;
	}
	error = start(client, request, &(struct job){
		.nsrun = options->nsrun,
		.log = request_value(request, "log"),
		.join = strcmp(cgroup, "join") == 0 ? target.pid : 0,
		.argv = lists.argv,
		.env = lists.env,
		.fds = lists.fds,
		.paths = lists.paths,
		.modes = lists.modes,
		.deadline_ns = deadline_ms * NS_PER_MS,
		.done = -1,
	});
	lists_free(&lists);
	if (error)
		client_reply_error(client, request, "fork", error);
}

void kill_spawn_verb(struct client *client, const struct request *request)
{
	struct spawn *spawn = find(client->sentinel, client->serial, request_value(request, "spawn"));

	if (!spawn) {
		client_reply(client, request, "refused", "unknown-spawn");
		return;
	}
	/* Not reaped yet, so the pid cannot have been reused. */
	kill(spawn->supervisor, SIGTERM);
	client_reply(client, request, "ok", NULL);
}

/* A killed supervisor leaves its children to us. Every child of ours that is no supervisor is such an orphan. */
static void kill_orphans(struct sentinel *sentinel)
{
	struct processes children = { 0 };

	tree_children((struct process){ .pid = getpid() }, &children);
	for (size_t i = 0; i < children.count; i++) {
		bool supervisor = false;

		for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
			supervisor |= spawn->supervisor == children.list[i].pid;
		if (!supervisor)
			tree_kill(children.list[i]);
	}
	processes_free(&children);
}

static void answer(struct sentinel *sentinel, const struct spawn *spawn, const struct report *report)
{
	bool killed = WIFSIGNALED(report->status);
	struct message message;

	if (report->error) {
		char reason[REPORT_WHAT + 128];

		snprintf(reason, sizeof reason, "%.*s: %s", REPORT_WHAT, report->what, strerror(report->error));
		message_begin(&message, spawn->asker.id, "failed");
		message_text(&message, "reason", reason);
	} else {
		message_begin(&message, spawn->asker.id, "exited");
		message_number(&message, "code", killed ? 128 + WTERMSIG(report->status) : WEXITSTATUS(report->status));
		message_number(&message, "signal", killed ? WTERMSIG(report->status) : 0);
		message_number(&message, "ms", (monotonic_ns() - spawn->began) / NS_PER_MS);
		message_number(&message, "expired", report->expired);
	}
	message_end(&message);
	client_send_to_asker(sentinel, &spawn->asker, &message);
}

static bool is_gone(const struct sentinel *sentinel, uint64_t serial)
{
	for (const struct client *client = sentinel->clients; client; client = client->next)
		if (client->serial == serial)
			return false;
	return true;
}

bool spawns_of(const struct sentinel *sentinel, uint64_t serial)
{
	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (!spawn->detached && spawn->asker.serial == serial)
			return true;
	return false;
}

static bool works_during(const struct spawn *spawn, const char *stop)
{
	return spawn->during && !spawn->is_done && strcmp(spawn->during, stop) == 0;
}

size_t spawns_during(const struct sentinel *sentinel, uint64_t serial, const char *stop)
{
	size_t count = 0;

	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		count += spawn->asker.serial == serial && works_during(spawn, stop);
	return count;
}

bool spawns_of_others_during(const struct sentinel *sentinel, uint64_t serial, const char *stop)
{
	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (spawn->asker.serial != serial && works_during(spawn, stop))
			return true;
	return false;
}

bool spawns_wait(const struct sentinel *sentinel)
{
	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (!spawn->detached)
			return true;
	return false;
}

bool spawns_kill_of(struct sentinel *sentinel, uint64_t serial)
{
	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (!spawn->detached && spawn->asker.serial == serial)
			kill(spawn->supervisor, SIGTERM);
	return spawns_of(sentinel, serial);
}

void spawn_ended(struct sentinel *sentinel, pid_t pid)
{
	for (struct spawn **at = &sentinel->spawns; *at; at = &(*at)->next) {
		struct spawn *spawn = *at;
		struct report report;

		if (spawn->supervisor != pid)
			continue;
		*at = spawn->next;
		if (read(spawn->report, &report, sizeof report) != (ssize_t)sizeof report) {
			log_line("error", "a supervisor was killed", ",\"pid\":%d", (int)pid);
			report = (struct report){ .status = SIGKILL };
			/*
			 * An application may depend on the rest of a detached program, and end with it in its own way.
			 */
			if (!spawn->detached)
				kill_orphans(sentinel);
		}
		/* Before any reply: an application may be stopped for this spawn. */
		if (spawn->during && !spawn->is_done)
			stop_work_ended(sentinel, spawn->asker.serial, spawn->during,
					!report.error && report.status == 0 && !report.expired);
		if (spawn->detached)
			log_line(report.error ? "error" : "info", "a detached program has ended", ",\"pid\":%d,\"status\":%d,\"errno\":%d",
				 (int)pid, report.status, report.error);
		else
			answer(sentinel, spawn, &report);
		if (is_gone(sentinel, spawn->asker.serial) && !spawns_of(sentinel, spawn->asker.serial))
			stops_continue_of(sentinel, spawn->asker.serial);
		spawn_free(sentinel, spawn);
		return;
	}
}

void spawns_kill_all(struct sentinel *sentinel)
{
	for (const struct spawn *spawn = sentinel->spawns; spawn; spawn = spawn->next)
		if (!spawn->detached)
			kill(spawn->supervisor, SIGTERM);
}
