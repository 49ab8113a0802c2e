#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "grave.h"
#include "log.h"
#include "verbs.h"

struct watch {
	struct source source; /* the pidfd; forgotten once it has told of the death */
	struct watch *next;
	struct sentinel *sentinel;
	char *name;
	struct process process;
	struct grave *grave;
	int64_t died_unix_ns; /* 0: lives */
	int64_t grave_us; /* from noticing the death to the kernel's acknowledgement */
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
	message_end(message);
}

/* Closes the grave, or tries; returns how long it took, in microseconds. */
static int64_t close_grave(struct watch *watch)
{
	int64_t began = monotonic_ns();
	int error = grave_close(watch->grave);

	if (error)
		log_line("error", "grave failed", ",\"name\":\"%s\",\"error\":\"%s\"", log_safe(watch->name), strerror(error));
	return (monotonic_ns() - began) / NS_PER_US;
}

/* Nothing comes before the grave: the container is about to start again, empty. */
static void died(struct source *source, uint32_t events)
{
	struct watch *watch = (struct watch *)source;
	struct sentinel *sentinel = watch->sentinel;
	struct message message;

	(void)events;
	if (watch->grave)
		watch->grave_us = close_grave(watch);
	watch->died_unix_ns = unix_ns() - watch->grave_us * NS_PER_US;
	/* The watch stays; its descriptor has told all it knows. */
	loop_close(&sentinel->loop, source);
	obituary(watch, &message);
	clients_tell(sentinel, &message);
	if (watch->grave)
		grave_sweep(watch->grave);
	log_line("info", "death", ",\"name\":\"%s\",\"pid\":%d,\"grave\":\"%s\",\"grave_us\":%lld", log_safe(watch->name),
		 (int)watch->process.pid, grave_state_name(watch->grave), (long long)watch->grave_us);
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
	client_reply(client, request, "watching", NULL);
}

/* The watch of that name, or NULL after a refusal. */
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
	loop_forget(&sentinel->loop, &watch->source);
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
		/* Until it is unwatched nobody can be known to have taken note: told once too often is harmless. */
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
 * Whether connections to that pod go to an heir already: it has died, another container of it has, or it was buried.
 * A new grave must not leave it open, for no moment.
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

void grave_verb(struct client *client, const struct request *request)
{
	struct watch *watch = named(client, request);
	int64_t began = monotonic_ns();
	struct process process;
	struct in_addr heir;
	struct grave *grave;

	if (!watch || !verb_process(client, request, "netns", "start", &process))
		return;
	if (inet_pton(AF_INET, request_value(request, "heir"), &heir) != 1 || heir.s_addr == INADDR_ANY) {
		client_reply(client, request, "refused", "bad-heir");
		return;
	}
	grave = grave_dig(process, heir.s_addr, is_closed, watch);
	if (!grave) {
		/* The one before, if there was one, still stands: a table is replaced as a whole or not at all. */
		client_reply_error(client, request, errno == EPERM ? "not a pod's network" : "grave", errno);
		return;
	}
	grave_free(watch->grave);
	watch->grave = grave;
	if (grave->state == GRAVE_CLOSED)
		reply_closed(client, request, grave, (monotonic_ns() - began) / NS_PER_US);
	else
		client_reply(client, request, "ready", NULL);
}

/* The watch of that name if it has a grave, or NULL after a refusal. */
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

	if (watch)
		reply_closed(client, request, watch->grave, close_grave(watch));
}

void exhume_verb(struct client *client, const struct request *request)
{
	struct watch *watch = named_with_grave(client, request);
	int error;

	if (!watch)
		return;
	error = grave_open(watch->grave);
	if (error) {
		client_reply_error(client, request, "exhume", error);
		return;
	}
	/* It was the pod's, so that of its other containers is open, too, and closes at their death. */
	for (struct watch *other = client->sentinel->watches; other; other = other->next)
		if (other->grave && network_same(&other->grave->network, &watch->grave->network))
			other->grave->state = GRAVE_READY;
	client_reply(client, request, "ok", NULL);
}
