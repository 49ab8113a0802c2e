/*
 * PID 1 of an understudy. Without an order it only waits and uses no processor time. An order makes it the parent of
 * the app, which it starts itself or the agent restores below it. From then on it is transparent: it forwards signals
 * to the app, and ends when the app ends, or a second later if the app has ended by itself. Orders live in a
 * connection, never in a file: after a restart of the container nothing is left that could run the app a second time.
 * See docs/adr/0021-hold-and-its-orders.md.
 *
 * Long because the whole life of PID 1 is one state machine.
 */
#include "hold.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "clock.h"
#include "listen.h"
#include "log.h"
#include "number.h"
#include "order_key.h"
#include "order_protocol.h"
#include "pid1.h"
#include "server.h"
#include "usage.h"

enum { PLACES = 4, COMMANDS = 8, LINGER_SECONDS = 1 };

struct hold {
	struct server server;
	const char *directory; /* NULL: no orders */
	struct order_key key;
	int stop_signal; /* 0: only the usual ones */
	char **command; /* ends with NULL, may be empty */
	size_t command_count;
	sigset_t mask; /* the caller's mask, for the app */
	pid_t app; /* 0: none */
	struct exits exits;
	pid_t commands[COMMANDS]; /* the latest commands that run beside the app; 0: none */
	size_t command_turn;
	int exit_code;
	bool app_ended;
	bool asked_to_end; /* by a signal that went to the app */
	char path[sizeof ((struct sockaddr_un *)0)->sun_path];
	/* One byte more than the longest order, so that a byte behind it is noticed. */
	char buffers[PLACES * (ORDER_REQUEST_MAX + 1)];
};

static void end(struct hold *hold, int code)
{
	hold->exit_code = code;
	hold->server.stopping = true;
}

static void note_end(void *context, pid_t pid, int status)
{
	struct hold *hold = context;

	exits_remember(&hold->exits, pid, exit_code_of(status));
	for (size_t i = 0; i < COMMANDS; i++)
		if (hold->commands[i] == pid)
			hold->commands[i] = 0;
	if (pid != hold->app)
		return;
	hold->app_ended = true;
	end(hold, exit_code_of(status));
}

static void take_signal(void *context, const struct signalfd_siginfo *info)
{
	struct hold *hold = context;
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD)
		reap_children(hold, note_end);
	else if (hold->app > 0) {
		/* To the app alone, not to its group: without a hold a runtime signals the same process. */
		kill(hold->app, number);
		/* Other signals have other meanings for an app that survives them, such as SIGQUIT for a JVM. */
		if (number == SIGTERM || number == hold->stop_signal)
			hold->asked_to_end = true;
	} else if (number == SIGTERM || number == SIGINT || number == SIGQUIT || number == hold->stop_signal)
		/* Without an app, signals with another meaning for an app, e.g. SIGHUP to reload, have no effect. */
		end(hold, 128 + number);
}

/*
 * Accepts orders only from root outside the container: a peer outside our pid namespace and its descendants has no pid
 * here. So the app cannot give orders to its own PID 1. Without a namespace of our own it accepts our own user. Other
 * containers of the pod are outside, too; the key protects us from them.
 */
static bool may_know(int fd)
{
	struct ucred peer = { .pid = -1, .uid = (uid_t)-1 };
	socklen_t length = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return false;
	return getpid() == 1 ? peer.pid == 0 && peer.uid == 0 : peer.uid == geteuid() || peer.uid == 0;
}

struct outcome {
	enum order_word word;
	int64_t number;
};

static struct outcome start(struct hold *hold, const struct order *order)
{
	size_t count = order->count + hold->command_count, at = 0;
	const char *argument = order->arguments;
	char **argv;
	pid_t pid;
	int error;

	if (hold->app > 0)
		return (struct outcome){ WORD_BUSY, hold->app };
	if (count == 0)
		return (struct outcome){ WORD_FAILED, EINVAL };
	argv = calloc(count + 1, sizeof *argv);
	if (!argv)
		return (struct outcome){ WORD_FAILED, ENOMEM };
	for (; at < order->count; argument += strlen(argument) + 1)
		argv[at++] = (char *)argument;
	memcpy(argv + at, hold->command, hold->command_count * sizeof *argv);
	pid = spawn(argv, &hold->mask, false);
	error = errno;
	free(argv);
	if (pid < 0)
		return (struct outcome){ WORD_FAILED, error };
	hold->app = pid;
	return (struct outcome){ WORD_STARTED, pid };
}

static struct outcome adopt(struct hold *hold, pid_t pid)
{
	int code = 0;

	if (hold->app > 0 && hold->app != pid)
		return (struct outcome){ WORD_BUSY, hold->app };
	switch (child_state(&hold->exits, pid, &code)) {
	case CHILD_ALIVE:
		hold->app = pid;
		return (struct outcome){ WORD_ADOPTED, pid };
	case CHILD_DEAD:
		/* Not our end: the agent may have an older generation to try. */
		return (struct outcome){ WORD_DIED, code };
	case CHILD_UNKNOWN:
		break;
	}
	return (struct outcome){ WORD_UNKNOWN, pid };
}

/* Runs the command of a probe, with the rights of this container: the agent has those of the node. */
static struct outcome run(struct hold *hold, const struct order *order)
{
	char *argv[ORDER_ARGUMENTS_MAX + 1];
	const char *argument = order->arguments;
	size_t at = 0;
	pid_t pid;

	if (hold->app <= 0)
		return (struct outcome){ WORD_HOLDING, 0 };
	for (; at < order->count; argument += strlen(argument) + 1)
		argv[at++] = (char *)argument;
	argv[at] = NULL;
	pid = spawn(argv, &hold->mask, true);
	if (pid < 0)
		return (struct outcome){ WORD_FAILED, errno };
	hold->commands[hold->command_turn++ % COMMANDS] = pid;
	return (struct outcome){ WORD_STARTED, pid };
}

static struct outcome wait_for(const struct hold *hold, pid_t pid)
{
	int code = 0;

	switch (child_state(&hold->exits, pid, &code)) {
	case CHILD_ALIVE:
		return (struct outcome){ WORD_RUNNING, pid };
	case CHILD_DEAD:
		return (struct outcome){ WORD_DIED, code };
	case CHILD_UNKNOWN:
		break;
	}
	return (struct outcome){ WORD_UNKNOWN, pid };
}

static struct outcome end_command(const struct hold *hold, pid_t pid)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (pid > 0 && hold->commands[i] == pid) {
			/*
			 * It leads a session, and so a group, of its own. It is not reaped yet, so its pid cannot have
			 * been reused.
			 */
			kill(-pid, SIGKILL);
			return (struct outcome){ WORD_KILLED, pid };
		}
	return (struct outcome){ WORD_UNKNOWN, pid };
}

static struct outcome obey(struct hold *hold, const struct order *order)
{
	pid_t former = hold->app;

	switch (order->verb) {
	case ORDER_STATE:
		return (struct outcome){ former > 0 ? WORD_RUNNING : WORD_HOLDING, former };
	case ORDER_START:
		return start(hold, order);
	case ORDER_ADOPT:
		return adopt(hold, (pid_t)order->number);
	case ORDER_RELEASE:
		hold->app = 0;
		return (struct outcome){ WORD_RELEASED, former };
	case ORDER_END:
		end(hold, (int)order->number);
		return (struct outcome){ WORD_ENDING, order->number };
	case ORDER_RUN:
		return run(hold, order);
	case ORDER_WAIT:
		return wait_for(hold, (pid_t)order->number);
	case ORDER_KILL:
		return end_command(hold, (pid_t)order->number);
	}
	return (struct outcome){ WORD_MALFORMED, 0 };
}

static bool answer(void *context, int fd, const char *bytes, size_t length, enum arrival arrival, struct reply *reply)
{
	struct hold *hold = context;
	struct outcome outcome = { WORD_DENIED, 0 };
	struct order order;

	enum order_parse parsed = order_parse(bytes, length, &order);
	bool known = may_know(fd);

	if (known && parsed == ORDER_INCOMPLETE && arrival == ARRIVAL_BYTES)
		return false;
	/* Every process here may ask whether there is an app: commands that are only for the app do, see if_app.c. */
	if (parsed == ORDER_COMPLETE && (order.verb == ORDER_STATE || (known && order_key_is(&hold->key, order.key))))
		outcome = obey(hold, &order);
	/* A partial order counts as malformed, also if the client has left before it was complete. */
	else if (known && parsed != ORDER_COMPLETE)
		outcome = (struct outcome){ WORD_MALFORMED, 0 };
	reply->length = order_format_reply(reply->text, sizeof reply->text, outcome.word, outcome.number, unix_ns());
	return true;
}

static int parse_options(int argc, char **argv, struct hold *hold)
{
	static const struct option known[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ "stop-signal", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int64_t number;
	int option;

	/* '+': the options end where the app's command begins. */
	while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		switch (option) {
		case 'd':
			hold->directory = optarg;
			break;
		case 's':
			if (!parse_number(optarg, SIGRTMAX, &number) || number == 0)
				return usage(stderr, EXIT_USAGE);
			hold->stop_signal = (int)number;
			break;
		default:
			return usage(stderr, EXIT_USAGE);
		}
	}
	hold->command = argv + optind;
	hold->command_count = (size_t)(argc - optind);
	return 0;
}

static int open_orders(struct hold *hold)
{
	int length;

	hold->server.listener = -1;
	hold->server.local = -1;
	if (!hold->directory)
		return 0;
	length = snprintf(hold->path, sizeof hold->path, "%s/hold.sock", hold->directory);
	if (length < 0 || (size_t)length >= sizeof hold->path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (mkdir(hold->directory, 0700) != 0 && errno != EEXIST)
		return -1;
	/* Only the process that has the socket may write a key; it serves no client before both exist. */
	hold->server.listener = listen_unix(hold->path);
	return hold->server.listener < 0 ? -1 : order_key_keep(&hold->key, hold->directory);
}

/*
 * Keeps the container for a moment after its app has ended by itself, with no other process in it. The agent then leads
 * the pod's connections to a successor, and the successor comes into the pod's Services. If the kubelet notices the end
 * before that, it takes this pod out of them, and a proxy that sees a Service without endpoints refuses connections.
 */
static void linger(const struct hold *hold)
{
	const struct timespec time = { .tv_sec = LINGER_SECONDS };
	sigset_t wake;

	/* In a pid namespace of others, other processes are not ours to end. */
	if (!hold->app_ended || hold->asked_to_end || getpid() != 1)
		return;
	kill(-1, SIGKILL);
	sigfillset(&wake);
	sigdelset(&wake, SIGCHLD);
	sigtimedwait(&wake, NULL, &time);
}

int hold_main(int argc, char **argv)
{
	/* In .bss: adds nothing to the file, and no page of it takes memory before its use. */
	static struct hold hold;
	int failed = parse_options(argc, argv, &hold);

	if (failed)
		return failed;
	hold.server.signals = signals_open(&hold.mask);
	if (hold.server.signals < 0) {
		log_failure("cannot take signals", errno);
		return EXIT_FAILED;
	}
	if (open_orders(&hold) != 0) {
		log_failure("cannot listen for orders", errno);
		return EXIT_FAILED;
	}
	hold.server.slots = PLACES;
	hold.server.capacity = ORDER_REQUEST_MAX + 1;
	hold.server.buffers = hold.buffers;
	hold.server.context = &hold;
	hold.server.request = answer;
	hold.server.signal = take_signal;
	if (server_run(&hold.server) != 0) {
		log_failure("cannot poll", errno);
		return EXIT_FAILED;
	}
	if (hold.directory) {
		unlink(hold.path);
		order_key_drop(hold.directory);
	}
	linger(&hold);
	return hold.exit_code;
}
