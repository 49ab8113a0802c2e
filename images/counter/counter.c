/*
 * An HTTP server whose whole state is one number in memory: the smallest application whose memory matters.
 *
 *   counter [--port N] [--start-delay MS] [ignore]
 *
 *   GET /         adds one, then answers {"count":N,"pid":P,"host":"pod","startedAt":unix milliseconds,
 *                 "runsIn":"pod","after":"word"}. `host` is the pod in which it began, `runsIn` the pod in which it
 *                 runs now: restored memory remembers the former
 *   GET /?by=WORD the same; the next addition answers this WORD, of 31 letters, digits and - at most, as `after`: so
 *                 a client knows which addition its own has followed
 *   GET /peek     the same as / without adding
 *   GET /state    the state for another process: {"count":N}
 *   POST /state   sets such a state: counting continues from N; 400 when the body has no N
 *   GET /healthz  200, or 503 between POST /fail and POST /recover
 *   POST /crash   ends the process with exit code 7, without an answer
 *
 * HEAD works wherever GET does. One thread, one poll loop, keep-alive and pipelining. SIGTERM and SIGINT end it at once
 * with exit code 0; with `ignore` it ignores both, like applications that only SIGKILL can stop.
 *
 * Long because the sample app is one program of one file, which a reader can copy.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 1024, REQUEST = 4096, RESPONSE = 1024, WORD = 32 };

struct connection {
	int fd;
	int closing;          /* close the connection once the response is sent */
	int draining;         /* our side is shut down: only waiting for the client to close */
	size_t have;          /* bytes of request read so far */
	size_t out, out_done; /* bytes of response, and of those already written */
	char request[REQUEST];
	char response[RESPONSE];
};

static struct connection connections[CONNECTIONS];
static struct pollfd polls[CONNECTIONS + 1];
static unsigned long long count;
static int healthy = 1;
static char host[256];
static double started_ms;
static char last_word[WORD];

static void stop(int signal)
{
	(void)signal;
	_exit(0);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_on(int port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	int on = 1, off = 0;
	/* One socket for both families where the kernel has IPv6. */
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int is_six = fd >= 0;

	if (!is_six)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (is_six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if ((is_six ? bind(fd, (struct sockaddr *)&six, sizeof six)
		    : bind(fd, (struct sockaddr *)&four, sizeof four)) < 0)
		die("bind");
	if (listen(fd, 512) < 0)
		die("listen");
	return fd;
}

static void respond(struct connection *c, int status, const char *type, const char *body, int head)
{
	const char *reason = status == 200   ? "OK"
			     : status == 404 ? "Not Found"
			     : status == 405 ? "Method Not Allowed"
			     : status == 431 ? "Request Header Fields Too Large"
			     : status == 503 ? "Service Unavailable"
					     : "Bad Request";
	int n = snprintf(c->response, sizeof c->response,
			 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
			 "Connection: %s\r\n\r\n%s",
			 status, reason, type, strlen(body), c->closing ? "close" : "keep-alive", head ? "" : body);

	c->out = (size_t)n < sizeof c->response ? (size_t)n : sizeof c->response - 1;
	c->out_done = 0;
}

/* Value of a header in the NUL-terminated request, or NULL; the name is given with its colon. */
static const char *header(const char *request, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, length) == 0) {
			line += length;
			while (*line == ' ' || *line == '\t')
				line++;
			return line;
		}
	}
	return NULL;
}

static int says(const char *value, const char *word)
{
	return value && strncasecmp(value, word, strlen(word)) == 0 && !isalnum((unsigned char)value[strlen(word)]);
}

/* Sets the count to the number behind "count": in a body; returns 0 if the body has none. */
static int take_state(const char *body)
{
	const char *at = strstr(body, "\"count\"");
	char *end;

	if (!at)
		return 0;
	at += strlen("\"count\"");
	while (*at == ' ' || *at == ':')
		at++;
	if (!isdigit((unsigned char)*at))
		return 0;
	errno = 0;
	unsigned long long n = strtoull(at, &end, 10);
	if (errno)
		return 0;
	count = n;
	return 1;
}

/* Replaces what must not go into JSON unquoted. */
static void tame(char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '-' && *text != '.')
			*text = '_';
}

/* Takes the word of an addition; empty if it has none. */
static void take_word(const char *query)
{
	const char *by = query && strncmp(query, "by=", 3) == 0 ? query + 3 : "";

	snprintf(last_word, sizeof last_word, "%s", by);
	tame(last_word);
}

/* `content`: the body, NUL-terminated, or NULL if it is not read. */
static void answer(struct connection *c, char *request, const char *content)
{
	char method[8], path[128], version[16], body[700], pod[HOST_NAME_MAX + 1] = "", after[WORD];
	const char *length = header(request, "content-length:");
	const char *connection = header(request, "connection:");

	if (sscanf(request, "%7s %127s %15s", method, path, version) != 3 || strncmp(version, "HTTP/1.", 7) != 0) {
		c->closing = 1;
		respond(c, 400, "text/plain", "bad request\n", 0);
		return;
	}
	/* Other bodies are not read, so what follows the headers would be parsed as the next request. */
	if ((!content && length && atoi(length) > 0) || header(request, "transfer-encoding:") || says(connection, "close") ||
	    (strcmp(version, "HTTP/1.0") == 0 && !says(connection, "keep-alive")))
		c->closing = 1;
	char *query = strchr(path, '?');
	if (query)
		*query++ = 0;

	int head = strcmp(method, "HEAD") == 0;
	int reading = head || strcmp(method, "GET") == 0;
	int posting = strcmp(method, "POST") == 0;
	int root = strcmp(path, "/") == 0;

	if (root || strcmp(path, "/peek") == 0) {
		if (!reading) {
			respond(c, 405, "text/plain", "GET or HEAD\n", 0);
			return;
		}
		memcpy(after, last_word, sizeof after);
		if (root) {
			count++;
			take_word(query);
		}
		gethostname(pod, sizeof pod - 1);
		tame(pod);
		snprintf(body, sizeof body,
			 "{\"count\":%llu,\"pid\":%d,\"host\":\"%s\",\"startedAt\":%.3f,\"runsIn\":\"%s\",\"after\":\"%s\"}\n",
			 count, (int)getpid(), host, started_ms, pod, after);
		respond(c, 200, "application/json", body, head);
	} else if (strcmp(path, "/state") == 0 && reading) {
		snprintf(body, sizeof body, "{\"count\":%llu}\n", count);
		respond(c, 200, "application/json", body, head);
	} else if (strcmp(path, "/state") == 0 && posting) {
		if (content && take_state(content))
			respond(c, 200, "text/plain", "taken\n", 0);
		else
			respond(c, 400, "text/plain", "want {\"count\":N}\n", 0);
	} else if (strcmp(path, "/healthz") == 0 && reading) {
		respond(c, healthy ? 200 : 503, "text/plain", healthy ? "ok\n" : "told to fail\n", head);
	} else if (posting && (strcmp(path, "/fail") == 0 || strcmp(path, "/recover") == 0)) {
		healthy = path[1] == 'r';
		respond(c, 200, "text/plain", healthy ? "healthy\n" : "unhealthy\n", 0);
	} else if (posting && strcmp(path, "/crash") == 0) {
		_exit(7);
	} else {
		respond(c, 404, "text/plain", "no such page\n", head);
	}
}

static void hang_up(struct connection *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Answers the complete requests in the buffer, one at a time, until the socket would block. */
static void serve(struct connection *c)
{
	for (;;) {
		while (c->out_done < c->out) {
			ssize_t n = send(c->fd, c->response + c->out_done, c->out - c->out_done, MSG_NOSIGNAL);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0 && errno == EAGAIN)
				return;
			if (n < 0) {
				hang_up(c);
				return;
			}
			c->out_done += (size_t)n;
		}
		c->out = c->out_done = 0;
		if (c->closing) {
			/* Closing with unread bytes would reset the connection, and the client could lose the answer. */
			c->draining = 1;
			c->have = 0;
			if (shutdown(c->fd, SHUT_WR) < 0)
				hang_up(c);
			return;
		}
		c->request[c->have] = 0;
		char *end = strstr(c->request, "\r\n\r\n");
		if (!end) {
			if (c->have < REQUEST - 1)
				return;
			c->closing = 1;
			respond(c, 431, "text/plain", "request too large\n", 0);
			continue;
		}
		size_t used = (size_t)(end + 4 - c->request), body = 0;
		char *content = NULL;
		/* Keep the last header's line end, so that header() sees whole lines. */
		end[2] = 0;
		const char *length = header(c->request, "content-length:");
		if (length && strncmp(c->request, "POST /state", 11) == 0) {
			char *stop;
			long n = strtol(length, &stop, 10);
			if (n > 0 && (size_t)n < REQUEST - 1 - used) {
				body = (size_t)n;
				if (c->have < used + body) {
					end[2] = '\r';
					return;
				}
				content = end + 4;
			}
		}
		/* The byte behind the body is the first of the next request. */
		char next = c->request[used + body];
		c->request[used + body] = 0;
		answer(c, c->request, content);
		used += body;
		c->request[used] = next;
		memmove(c->request, c->request + used, c->have - used);
		c->have -= used;
	}
}

static void receive(struct connection *c)
{
	ssize_t n = recv(c->fd, c->request + c->have, REQUEST - 1 - c->have, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	if (c->draining)
		return;
	c->have += (size_t)n;
	serve(c);
}

static void accept_all(int listener)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		if (connections[i].fd >= 0)
			continue;
		int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		connections[i] = (struct connection){ .fd = fd };
	}
}

static void loop(int listener)
{
	for (;;) {
		int room = 0;

		for (int i = 0; i < CONNECTIONS; i++) {
			struct connection *c = &connections[i];
			room |= c->fd < 0;
			/* poll() skips negative descriptors. Nothing is read while an answer waits to be written. */
			polls[i] = (struct pollfd){ .fd = c->fd, .events = c->out ? POLLOUT : POLLIN };
		}
		polls[CONNECTIONS] = (struct pollfd){ .fd = room ? listener : -1, .events = POLLIN };
		if (poll(polls, CONNECTIONS + 1, -1) < 0) {
			if (errno == EINTR)
				continue;
			die("poll");
		}
		for (int i = 0; i < CONNECTIONS; i++) {
			if (!polls[i].revents)
				continue;
			if (connections[i].out)
				serve(&connections[i]);
			else
				receive(&connections[i]);
		}
		if (polls[CONNECTIONS].revents)
			accept_all(listener);
	}
}

static long number(const char *option, const char *value, long least, long most)
{
	char *end;
	long n = value ? strtol(value, &end, 10) : 0;

	if (!value || !*value || *end || n < least || n > most) {
		fprintf(stderr, "counter: %s needs a number from %ld to %ld\n", option, least, most);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	long port = 8080, delay = 0;
	int ignore = 0;
	struct timespec now;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--port") == 0)
			port = number("--port", argv[++i], 1, 65535);
		else if (strcmp(argv[i], "--start-delay") == 0)
			delay = number("--start-delay", argv[++i], 0, 3600000);
		else if (strcmp(argv[i], "ignore") == 0)
			ignore = 1;
		else {
			fprintf(stderr, "usage: counter [--port N] [--start-delay MS] [ignore]\n");
			return 2;
		}
	}
	clock_gettime(CLOCK_REALTIME, &now);
	started_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;

	/* PID 1 of a container receives only the signals that it has a handler for. */
	signal(SIGTERM, ignore ? SIG_IGN : stop);
	signal(SIGINT, ignore ? SIG_IGN : stop);

	const char *name = getenv("HOSTNAME");
	if (name && *name)
		snprintf(host, sizeof host, "%s", name);
	else
		gethostname(host, sizeof host - 1);
	tame(host);

	struct timespec pause = { .tv_sec = delay / 1000, .tv_nsec = delay % 1000 * 1000000 };
	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;

	for (int i = 0; i < CONNECTIONS; i++)
		connections[i].fd = -1;
	int listener = listen_on((int)port);
	printf("counter: listening on port %ld\n", port);
	fflush(stdout);
	loop(listener);
}
