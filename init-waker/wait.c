/*
 * The cold gate: an init container that lets the pod start when a client with the token asks for it. It does so by its
 * end or, if it stays, by its answer to the kubelet. See docs/adr/0020-gate-and-wake-protocol.md and
 * 0094-a-gate-that-stays.md.
 *
 * Long because the whole life of a gate is one state machine.
 */
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "install.h"
#include "listen.h"
#include "log.h"
#include "number.h"
#include "pid1.h"
#include "server.h"
#include "usage.h"
#include "wake_protocol.h"

enum { PLACES = SERVER_CONNECTIONS, REFUSAL_LOG_MS = 1000 };

struct options {
	const char *bind;
	const char **installs; /* directories, `install_count` of them */
	size_t install_count;
	const char *socket; /* a socket that only this node can reach */
	uint16_t port;
	bool quiet;
	bool stay;
	uint8_t digest[SHA256_SIZE];
};

/* Refused peers, logged at most once a second: a flood of peers must not become a flood of log lines. */
struct refusals {
	unsigned denied, malformed; /* since the last line */
	unsigned long total;
	int64_t quiet_until; /* monotonic ms */
	char peer[INET6_ADDRSTRLEN]; /* of the last refused peer */
};

struct gate {
	struct server server;
	struct options options;
	struct refusals refusals;
	int64_t woken_ns; /* 0: not yet */
	int exit_code;
	/* One byte more than the longest line, so that a byte behind the newline is noticed. */
	char buffers[PLACES * (WAKE_LINE_MAX + 1)];
};

static void name_peer(int fd, char name[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage peer = { 0 };
	socklen_t length = sizeof peer;
	const struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&peer;
	const void *address = &((struct sockaddr_in *)&peer)->sin_addr;
	int family;

	name[0] = '\0';
	if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0)
		return;
	family = peer.ss_family;
	if (family == AF_UNIX) {
		strcpy(name, "node");
		return;
	}
	if (family == AF_INET6) {
		/* Show IPv4 peers of a dual-stack socket as IPv4. */
		family = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? AF_INET : AF_INET6;
		address = &v6->sin6_addr.s6_addr[family == AF_INET ? 12 : 0];
	}
	inet_ntop(family, address, name, INET6_ADDRSTRLEN);
}

static void refuse(struct gate *gate, int fd, enum wake_verdict verdict)
{
	if (verdict == VERDICT_DENIED)
		gate->refusals.denied++;
	else
		gate->refusals.malformed++;
	gate->refusals.total++;
	name_peer(fd, gate->refusals.peer);
}

static int64_t log_refusals(void *context, int64_t now)
{
	struct gate *gate = context;
	struct refusals *refusals = &gate->refusals;

	if (refusals->denied + refusals->malformed == 0)
		return INT64_MAX;
	if (now < refusals->quiet_until)
		return refusals->quiet_until;
	if (!gate->options.quiet)
		log_line("warn", "refused", ",\"denied\":%u,\"malformed\":%u,\"total\":%lu,\"peer\":\"%s\"",
			 refusals->denied, refusals->malformed, refusals->total, refusals->peer);
	refusals->denied = refusals->malformed = 0;
	refusals->quiet_until = now + REFUSAL_LOG_MS;
	return INT64_MAX;
}

/* Only this node may read the count of refusals: others could learn from it about their guesses. */
static bool is_count_request(int fd, const char *bytes, size_t length)
{
	static const char request[] = "understudy/1 refused\n";
	struct sockaddr_storage own = { 0 };
	socklen_t size = sizeof own;

	return length == sizeof request - 1 && memcmp(bytes, request, length) == 0 &&
	       getsockname(fd, (struct sockaddr *)&own, &size) == 0 && own.ss_family == AF_UNIX;
}

/* A startup probe of the kubelet; the rest of the HTTP request does not matter. */
static bool is_opened_request(const char *bytes, size_t length)
{
	static const char request[] = "GET /opened ";

	return length >= sizeof request - 1 && memcmp(bytes, request, sizeof request - 1) == 0;
}

static void answer_opened(struct reply *reply)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

	memcpy(reply->text, ok, sizeof ok - 1);
	reply->length = sizeof ok - 1;
}

static void open_up(struct gate *gate, enum wake_kind kind, int64_t now)
{
	struct reply opened = { .length = 0 };

	gate->woken_ns = now;
	gate->server.stopping = !gate->options.stay;
	answer_opened(&opened);
	server_answer_held(&gate->server, &opened);
	if (!gate->options.quiet)
		log_line("info", "woken", ",\"kind\":\"%s\",\"at\":\"%lld\",\"refused\":%lu", wake_kind_name(kind),
			 (long long)now, gate->refusals.total);
}

static bool answer(void *context, int fd, const char *bytes, size_t length, enum arrival arrival, struct reply *reply)
{
	struct gate *gate = context;
	struct wake_request request;
	enum wake_parse parsed = wake_parse(bytes, length, &request);
	enum wake_verdict verdict = VERDICT_MALFORMED;
	int64_t now = unix_ns();

	if (gate->options.stay && is_opened_request(bytes, length)) {
		reply->later = gate->woken_ns == 0;
		if (!reply->later)
			answer_opened(reply);
		return true;
	}
	if (parsed == WAKE_INCOMPLETE && arrival == ARRIVAL_BYTES)
		return false;
	if (is_count_request(fd, bytes, length)) {
		reply->length = (size_t)snprintf(reply->text, sizeof reply->text, "understudy/1 refused %lu\n",
						 gate->refusals.total);
		return true;
	}
	/* A port check connects and closes without a byte: nothing to answer or to log. */
	if (length == 0 && arrival == ARRIVAL_END)
		return true;
	if (parsed == WAKE_REQUEST)
		verdict = wake_token_matches(request.token, gate->options.digest) ? VERDICT_WOKEN : VERDICT_DENIED;
	if (verdict == VERDICT_WOKEN && gate->woken_ns == 0)
		open_up(gate, request.kind, now);
	else if (verdict == VERDICT_WOKEN)
		verdict = VERDICT_ALREADY;
	else
		refuse(gate, fd, verdict);
	/* The time of the waking, not of the reply: a client that lost its first reply still gets the right time. */
	reply->length = wake_format_reply(reply->text, sizeof reply->text, verdict,
					  verdict == VERDICT_ALREADY ? gate->woken_ns : now);
	return true;
}

static void take_signal(void *context, const struct signalfd_siginfo *info)
{
	struct gate *gate = context;

	switch (info->ssi_signo) {
	case SIGCHLD:
		reap_children(NULL, NULL);
		break;
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
	case SIGHUP:
		gate->exit_code = 128 + (int)info->ssi_signo;
		gate->server.stopping = true;
		break;
	default:
		break;
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "port", required_argument, NULL, 'p' },    { "token-sha256", required_argument, NULL, 't' },
		{ "bind", required_argument, NULL, 'b' },    { "install", required_argument, NULL, 'i' },
		{ "socket", required_argument, NULL, 's' },  { "quiet", no_argument, NULL, 'q' },
		{ "stay", no_argument, NULL, 'y' },	     { NULL, 0, NULL, 0 },
	};
	bool port = false, digest = false;
	int64_t number;
	int option;

	options->installs = calloc((size_t)argc, sizeof *options->installs);
	if (!options->installs)
		return EXIT_FAILED;
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'p':
			if (!parse_number(optarg, UINT16_MAX, &number))
				return usage(stderr, EXIT_USAGE);
			options->port = (uint16_t)number;
			port = true;
			break;
		case 't':
			if (!wake_parse_digest(optarg, options->digest))
				return usage(stderr, EXIT_USAGE);
			digest = true;
			break;
		case 'b':
			options->bind = optarg;
			break;
		case 'i':
			options->installs[options->install_count++] = optarg;
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'q':
			options->quiet = true;
			break;
		case 'y':
			options->stay = true;
			break;
		default:
			return usage(stderr, EXIT_USAGE);
		}
	}
	return port && digest && optind == argc ? 0 : usage(stderr, EXIT_USAGE);
}

static int open_gate(struct gate *gate)
{
	struct options *options = &gate->options;
	sigset_t previous;

	gate->server.signals = signals_open(&previous);
	if (gate->server.signals < 0) {
		log_failure("cannot take signals", errno);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < options->install_count; i++)
		if (install_self(options->installs[i], INSTALLED_NAME) != 0) {
			log_failure("cannot install", errno);
			return EXIT_FAILED;
		}
	gate->server.listener = listen_tcp(options->bind, &options->port);
	if (gate->server.listener < 0) {
		log_failure("cannot listen", errno);
		return EXIT_FAILED;
	}
	gate->server.local = options->socket ? listen_unix(options->socket) : -1;
	if (options->socket && gate->server.local < 0) {
		log_failure("cannot listen for this node", errno);
		return EXIT_FAILED;
	}
	if (!options->quiet)
		log_line("info", "waiting", ",\"port\":%u", (unsigned)options->port);
	return 0;
}

int wait_main(int argc, char **argv)
{
	/* In .bss: adds nothing to the file, and no page of it takes memory before its use. */
	static struct gate gate;
	struct reply farewell;
	int failed = parse_options(argc, argv, &gate.options);

	if (failed || (failed = open_gate(&gate)))
		return failed;
	gate.server.slots = PLACES;
	gate.server.capacity = WAKE_LINE_MAX + 1;
	gate.server.buffers = gate.buffers;
	gate.server.context = &gate;
	gate.server.request = answer;
	gate.server.signal = take_signal;
	gate.server.timer = log_refusals;
	if (server_run(&gate.server) != 0) {
		log_failure("cannot poll", errno);
		return EXIT_FAILED;
	}
	if (gate.options.socket)
		unlink(gate.options.socket);
	if (gate.exit_code != 0)
		return gate.exit_code;
	farewell.length =
		wake_format_reply(farewell.text, sizeof farewell.text, VERDICT_ALREADY, gate.woken_ns);
	server_dismiss(&gate.server, &farewell);
	return 0;
}
