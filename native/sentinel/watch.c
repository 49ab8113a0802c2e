/* Long because all verbs of a watch share its table and its life cycle. */
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "exit_event.h"
#include "exits.h"
#include "grave.h"
#include "log.h"
#include "number.h"
#include "process_stat.h"
#include "verbs.h"

struct watch {
	struct source source; /* the pidfd; closed once it has reported the death */
	struct watch *next;
	struct sentinel *sentinel;
	char *name;
	struct process process;
	struct grave *grave;
	int64_t lasts_ns; /* how long the redirect lasts unless renewed; 0: for ever */
	int64_t opens; /* monotonic end of a redirect that does not last for ever */
	int64_t died_unix_ns; /* 0: alive */
	bool early; /* heard of before its memory was freed */
	struct exit_event *event; /* of its first thread, where exits.h hears of no end; NULL: none */
	int looks; /* how often to look yet whether the other threads have begun to end, too */
	int64_t look_at; /* monotonic time of the next look */
	int64_t grave_us; /* time from noticing the death to the kernel's acknowledgement */
};

static struct watch *find(struct sentinel *sentinel, const char *name)
{
	for (struct watch *watch = sentinel->watches; watch; watch = watch->next)
		if (strcmp(watch->name, name) == 0)
			return watch;
	return NULL;
}

static size_t count_of(const struct watch *watch)
{
	size_t count = 0;

	for (; watch; watch = watch->next)
		count++;
	return count;
}

static void obituary(const struct watch *watch, struct message *message)
{
	message_begin(message, "-", "died");
	message_text(message, "name", watch->name);
	message_number(message, "at_unix_ns", watch->died_unix_ns);
	message_text(message, "grave", grave_state_name(watch->grave));
	message_number(message, "grave_us", watch->grave_us);
	message_number(message, "early", watch->early);
	message_end(message);
}

static bool same_pod(const struct watch *a, const struct watch *b)
{
	return a->grave && b->grave && network_same(&a->grave->network, &b->grave->network);
}

/*
 * True if another container of the pod has died or a client has sent `bury`: then the heir of its connections is
 * decided.
 */
static bool pod_is_closed(const struct watch *watch)
{
	for (const struct watch *other = watch->sentinel->watches; other; other = other->next)
		if (other != watch && same_pod(watch, other) && other->grave->state == GRAVE_CLOSED)
			return true;
	return false;
}

/* Tries to redirect the connections; returns how long that took, in microseconds. */
static int64_t close_grave(struct watch *watch)
{
	int64_t began = monotonic_ns();
	int error = grave_close(watch->grave);

	if (error)
		log_line("error", "grave failed", ",\"name\":\"%s\",\"error\":\"%s\"", log_safe(watch->name), strerror(error));
	watch->opens = began + watch->lasts_ns;
	return (monotonic_ns() - began) / NS_PER_US;
}

/* Redirects the connections of the pod, unless another container has done that: its heir stays. Returns the time in microseconds. */
static int64_t redirect(struct watch *watch)
{
	if (!watch->grave)
		return 0;
	if (!pod_is_closed(watch))
		return close_grave(watch);
	watch->grave->state = GRAVE_CLOSED;
	watch->opens = monotonic_ns() + watch->lasts_ns;
	return 0;
}

/*
 * The successor continues with the memory of the whole pod, so the pod's other containers must not run beside it. The
 * sentinel asks no client, because the agent or the operator may be unavailable.
 */
static void end_siblings(const struct watch *dead)
{
	for (const struct watch *other = dead->sentinel->watches; other; other = other->next)
		if (other != dead && !other->died_unix_ns && same_pod(dead, other)) {
			process_signal(other->process, SIGKILL);
			log_line("info", "ended with its sibling", ",\"name\":\"%s\",\"pid\":%d", log_safe(other->name),
				 (int)other->process.pid);
		}
}

/* The redirect comes first: the kubelet is about to start the container again, empty. */
static void died(struct source *source, uint32_t events)
{
	struct watch *watch = (struct watch *)source;
	struct sentinel *sentinel = watch->sentinel;
	struct message message;

	(void)events;
	watch->grave_us = redirect(watch);
	if (watch->early && watch->grave)
		grave_end_connections(watch->grave, watch->process);
	watch->died_unix_ns = unix_ns() - watch->grave_us * NS_PER_US;
	end_siblings(watch);
	/* The watch stays; its descriptor has nothing more to report. */
	loop_close(&sentinel->loop, source);
	obituary(watch, &message);
	clients_tell(sentinel, &message);
	if (watch->grave)
		grave_sweep(watch->grave);
	log_line("info", "death", ",\"name\":\"%s\",\"pid\":%d,\"grave\":\"%s\",\"grave_us\":%lld,\"early\":%s", log_safe(watch->name),
		 (int)watch->process.pid, grave_state_name(watch->grave), (long long)watch->grave_us, watch->early ? "true" : "false");
}

/* All threads of a process that is killed begin to end within microseconds, but they may wait for a processor. */
enum { LOOKS = 20, LOOK_NS = 500 * NS_PER_US };

enum ending { ENDING_NOT, ENDING_IN_COMPANY, ENDING_ALONE };

/* True if the process is the first one of its pid namespace: the kernel ends the others before it gives up their parent. */
static bool is_first(pid_t pid)
{
	char text[4096], *line, *last;

	if (!process_read(pid, "status", text, sizeof text))
		return false;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return false;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last && strcmp(last + 1, "1") == 0;
}

/* A kernel that tells no children may have some. */
static bool has_children(pid_t pid, pid_t thread)
{
	char path[64], byte;
	int fd;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, &byte, 1);
	close(fd);
	return n != 0;
}

/*
 * Whether no thread of the process executes its program any more. Its children do, until the kernel has freed its memory. Those of
 * a process that is not the first one of a container have another parent already, so they cannot be found.
 */
static enum ending ending_of(struct process process)
{
	enum { EXITING = 0x4 }; /* the kernel's PF_EXITING */
	enum ending ending = is_first(process.pid) ? ENDING_ALONE : ENDING_IN_COMPANY;
	char path[64];
	struct process_stat stat;
	struct dirent *entry;
	DIR *threads;

	if (!process_stat(process.pid, &stat) || stat.start != process.start)
		return ENDING_NOT;
	snprintf(path, sizeof path, "/proc/%d/task", (int)process.pid);
	threads = opendir(path);
	while (threads && ending != ENDING_NOT && (entry = readdir(threads))) {
		int64_t thread;

		/* A thread that is gone does not execute anything. */
		if (!parse_number(entry->d_name, PID_MAX, &thread) || !process_stat((pid_t)thread, &stat))
			continue;
		if (!(stat.flags & EXITING))
			ending = ENDING_NOT;
		else if (has_children(process.pid, (pid_t)thread))
			ending = ENDING_IN_COMPANY;
	}
	if (threads)
		closedir(threads);
	return threads ? ending : ENDING_NOT;
}

/* Clients go to the heir in any case. That may run only once no process of the container executes anything. Returns false if it lives. */
static bool look(struct watch *watch)
{
	enum ending ending;

	if (watch->died_unix_ns)
		return true;
	ending = ending_of(watch->process);
	if (ending == ENDING_NOT)
		return false;
	if (ending == ENDING_ALONE) {
		watch->early = true;
		died(&watch->source, 0);
	} else {
		redirect(watch);
		if (watch->grave)
			grave_end_connections(watch->grave, watch->process);
	}
	return true;
}

void watch_exiting(struct sentinel *sentinel, pid_t pid)
{
	for (struct watch *watch = sentinel->watches; watch; watch = watch->next)
		if (watch->process.pid == pid)
			look(watch);
}

void watch_first_ended(struct sentinel *sentinel, pid_t pid)
{
	for (struct watch *watch = sentinel->watches; watch; watch = watch->next)
		if (watch->process.pid == pid && !look(watch)) {
			watch->looks = LOOKS;
			watch->look_at = monotonic_ns() + LOOK_NS;
		}
}

/* Returns the time of the next look, or INT64_MAX. */
static int64_t look_again(struct watch *watch, int64_t now)
{
	if (watch->looks > 0 && watch->look_at <= now) {
		watch->looks = look(watch) ? 0 : watch->looks - 1;
		watch->look_at = now + LOOK_NS;
	}
	return watch->looks > 0 ? watch->look_at : INT64_MAX;
}

size_t watched_pids(const struct sentinel *sentinel, pid_t *pids, size_t room)
{
	size_t count = 0;

	for (const struct watch *watch = sentinel->watches; watch && count < room; watch = watch->next)
		if (!watch->died_unix_ns)
			pids[count++] = watch->process.pid;
	return count;
}

void watch_verb(struct client *client, const struct request *request)
{
	struct sentinel *sentinel = client->sentinel;
	const char *name = request_value(request, "name");
	struct watch *watch = find(sentinel, name);
	struct process process;
	int pidfd;

	if (!verb_process(client, request, "pid", "start", &process))
		return;
	client->hears = true;
	if (watch && watch->process.pid == process.pid && watch->process.start == process.start) {
		client_reply(client, request, "watching", NULL);
		return;
	}
	if (watch || count_of(sentinel->watches) >= WATCHES_MAX) {
		client_reply(client, request, "refused", "busy");
		return;
	}
	pidfd = process_open(process);
	if (pidfd < 0) {
		client_reply_error(client, request, "pidfd", errno);
		return;
	}
	watch = calloc(1, sizeof *watch);
	if (watch)
		watch->name = strdup(name);
	if (watch && watch->name) {
		watch->source = (struct source){ .fd = pidfd, .urgent = true, .ready = died };
		watch->sentinel = sentinel;
		watch->process = process;
	}
	if (!watch || !watch->name || !loop_add(&sentinel->loop, &watch->source, EPOLLIN)) {
		client_reply_error(client, request, "watch", watch && watch->name ? errno : ENOMEM);
		close(pidfd);
		if (watch)
			free(watch->name);
		free(watch);
		return;
	}
	watch->next = sentinel->watches;
	sentinel->watches = watch;
	exits_follow(sentinel);
	if (!sentinel->exits)
		watch->event = exit_event_begin(sentinel, process.pid);
	client_reply(client, request, "watching", NULL);
}

/* Returns the watch of that name, or NULL after a refusal. */
static struct watch *named(struct client *client, const struct request *request)
{
	struct watch *watch = find(client->sentinel, request_value(request, "name"));

	if (!watch)
		client_reply(client, request, "refused", "unknown-name");
	return watch;
}

void unwatch_verb(struct client *client, const struct request *request)
{
	struct sentinel *sentinel = client->sentinel;
	struct watch *watch = named(client, request);

	if (!watch)
		return;
	for (struct watch **at = &sentinel->watches; *at; at = &(*at)->next)
		if (*at == watch) {
			*at = watch->next;
			break;
		}
	free(watch->name);
	grave_free(watch->grave);
	exit_event_end(watch->event);
	loop_forget(&sentinel->loop, &watch->source);
	exits_follow(sentinel);
	client_reply(client, request, "ok", NULL);
}

void watches_verb(struct client *client, const struct request *request)
{
	struct message message;

	client->hears = true;
	for (const struct watch *watch = client->sentinel->watches; watch; watch = watch->next) {
		message_begin(&message, "-", "watch");
		message_text(&message, "name", watch->name);
		message_number(&message, "pid", watch->process.pid);
		message_number(&message, "start", (int64_t)watch->process.start);
		message_text(&message, "grave", grave_state_name(watch->grave));
		message_number(&message, "died", watch->died_unix_ns);
		message_end(&message);
		client_send(client, &message);
		if (!watch->died_unix_ns)
			continue;
		/*
		 * Until a client removes the watch, no client can be known to have seen the death. A repeated report is
		 * harmless.
		 */
		obituary(watch, &message);
		client_send(client, &message);
	}
	client_reply(client, request, "ok", NULL);
}

static void reply_closed(struct client *client, const struct request *request, const struct grave *grave,
			 int64_t us)
{
	struct message message;

	message_begin(&message, request->id, grave->state == GRAVE_CLOSED ? "closed" : "failed");
	if (grave->state == GRAVE_CLOSED)
		message_number(&message, "us", us);
	else
		message_text(&message, "reason", "the kernel refused; see the log");
	message_end(&message);
	client_send(client, &message);
	grave_sweep(grave);
}

/*
 * True if connections to that pod go to an heir already: it has died, another container of it has, or a client has sent
 * `bury`. A new grave must not interrupt the redirect even for a moment.
 */
static bool is_closed(void *context, const struct network *network)
{
	const struct watch *asked = context;

	if (asked->died_unix_ns)
		return true;
	for (const struct watch *watch = asked->sentinel->watches; watch; watch = watch->next)
		if (watch->grave && watch->grave->state == GRAVE_CLOSED && network_same(&watch->grave->network, network))
			return true;
	return false;
}

static void reply_grave(struct client *client, const struct request *request, struct watch *watch, int64_t began)
{
	watch->opens = began + watch->lasts_ns;
	if (watch->grave->state == GRAVE_CLOSED)
		reply_closed(client, request, watch->grave, (monotonic_ns() - began) / NS_PER_US);
	else
		client_reply(client, request, "ready", NULL);
}

/* Without a process the existing grave gets another heir. Its network namespace is known, even if the pod is gone. */
static void aim(struct client *client, const struct request *request, struct watch *watch, const struct address *heir)
{
	int64_t began = monotonic_ns();
	int error;

	if (!watch->grave) {
		client_reply(client, request, "refused", "no-grave");
		return;
	}
	error = grave_aim(watch->grave, heir);
	if (error)
		client_reply_error(client, request, "grave", error);
	else
		reply_grave(client, request, watch, began);
}

void grave_verb(struct client *client, const struct request *request)
{
	struct watch *watch = named(client, request);
	const char *lasts = request_value(request, "lasts");
	int64_t began = monotonic_ns(), lasts_ms = 0;
	struct process process;
	struct address heir;
	struct grave *grave;
	bool is_new = request_value(request, "netns") || request_value(request, "start");

	if (!watch)
		return;
	if (is_new && !(request_value(request, "netns") && request_value(request, "start"))) {
		client_reply(client, request, "refused", request_value(request, "netns") ? "missing-start" : "missing-netns");
		return;
	}
	if (is_new && !verb_process(client, request, "netns", "start", &process))
		return;
	if (!address_parse(request_value(request, "heir"), &heir)) {
		client_reply(client, request, "refused", "bad-heir");
		return;
	}
	if (lasts && (!parse_number(lasts, DEADLINE_MS_MAX, &lasts_ms) || lasts_ms == 0)) {
		client_reply(client, request, "refused", "bad-lasts");
		return;
	}
	watch->lasts_ns = lasts_ms * NS_PER_MS;
	if (!is_new) {
		aim(client, request, watch, &heir);
		return;
	}
	grave = grave_dig(process, &heir, is_closed, watch);
	if (!grave) {
		/* An earlier grave stays in effect: a table is replaced as a whole or not at all. */
		client_reply_error(client, request, errno == EPERM ? "not a pod's network" : "grave", errno);
		return;
	}
	grave_free(watch->grave);
	watch->grave = grave;
	reply_grave(client, request, watch, began);
}

/* Returns the watch of that name if it has a grave, or NULL after a refusal. */
static struct watch *named_with_grave(struct client *client, const struct request *request)
{
	struct watch *watch = named(client, request);

	if (!watch || watch->grave)
		return watch;
	client_reply(client, request, "refused", "no-grave");
	return NULL;
}

void bury_verb(struct client *client, const struct request *request)
{
	struct watch *watch = named_with_grave(client, request);
	int64_t us;

	if (!watch)
		return;
	us = close_grave(watch);
	/* It is stopped, or runs beside its successor. Clients that wait for its answer connect to the heir then. */
	if (!watch->died_unix_ns)
		grave_end_connections(watch->grave, watch->process);
	reply_closed(client, request, watch->grave, us);
}

/*
 * The redirect belonged to the pod, so it ends for the pod's other containers, too. Their next death starts it again.
 * Returns 0 or an errno.
 */
static int open_pod(const struct watch *watch)
{
	int error;

	/* All graves of a pod have one table, so a late change of one may come after this one. */
	for (struct watch *other = watch->sentinel->watches; other; other = other->next)
		if (same_pod(watch, other) && !grave_settle(other->grave))
			return EBUSY;
	error = grave_open(watch->grave);
	if (error)
		return error;
	for (struct watch *other = watch->sentinel->watches; other; other = other->next)
		if (same_pod(watch, other))
			other->grave->state = GRAVE_READY;
	return 0;
}

void exhume_verb(struct client *client, const struct request *request)
{
	struct watch *watch = named_with_grave(client, request);
	int error;

	if (!watch)
		return;
	error = open_pod(watch);
	if (error)
		client_reply_error(client, request, "exhume", error);
	else
		client_reply(client, request, "ok", NULL);
}

static bool is_closed_for_now(const struct watch *watch)
{
	return watch->grave && watch->grave->state == GRAVE_CLOSED && watch->lasts_ns;
}

/* True if another container of the pod keeps the redirect in effect for longer. */
static bool is_kept_closed(const struct watch *watch, int64_t now)
{
	for (const struct watch *other = watch->sentinel->watches; other; other = other->next)
		if (same_pod(watch, other) && other->grave->state == GRAVE_CLOSED && (!other->lasts_ns || other->opens > now))
			return true;
	return false;
}

int64_t watches_due(struct sentinel *sentinel, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct watch *watch = sentinel->watches; watch; watch = watch->next) {
		int64_t again = look_again(watch, now);

		if (again < next)
			next = again;
		if (watch->grave && !grave_settle(watch->grave) && now + PROMPT_NS < next)
			next = now + PROMPT_NS;
		if (is_closed_for_now(watch) && watch->opens <= now && !is_kept_closed(watch, now)) {
			int error = open_pod(watch);

			log_line("warn", "opened a grave that nobody stands behind", ",\"name\":\"%s\",\"errno\":%d",
				 log_safe(watch->name), error);
			/* If that failed, try again after the same time. */
			watch->opens = now + watch->lasts_ns;
		}
		if (is_closed_for_now(watch) && watch->opens > now && watch->opens < next)
			next = watch->opens;
	}
	return next;
}
