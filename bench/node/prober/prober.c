/*
 * A client that opens a connection for each request:
 *
 *   prober ADDRESS PORT INTERVAL_MS LIMIT_MS http|redis
 *
 * Every interval it opens one TCP connection and sends one request, on schedule even if the last answer has not come: a GET, or a redis'
 * number of keys. It prints one line of JSON for each when it is over: {"at":Unix ms,"ms":duration} and either "host" (the pod, or
 * `redis`) and "count", or "error". It ends with its standard input, so that it never outlives the bench.
 *
 * In C, because a runtime that takes a millisecond for each request would have a request under way in every tenth death.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, ANSWER = 2048, PATIENCE = 64 };

struct probe {
	int fd; /* -1: free */
	double at;
	bool asked;
	size_t have;
	char answer[ANSWER];
};

static struct probe probes[MOST];
static struct sockaddr_in target;
static const char *request, *protocol;
static double limit_ms;
static int events, timer;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static const char *name_of(int error)
{
	static char other[16];

	switch (error) {
	case ECONNREFUSED:
		return "ECONNREFUSED";
	case ECONNRESET:
		return "ECONNRESET";
	case EPIPE:
		return "EPIPE";
	case EHOSTUNREACH:
		return "EHOSTUNREACH";
	case ENETUNREACH:
		return "ENETUNREACH";
	case ETIMEDOUT:
		return "ETIMEDOUT";
	default:
		snprintf(other, sizeof other, "errno %d", error);
		return other;
	}
}

static void end(struct probe *probe)
{
	close(probe->fd);
	probe->fd = -1;
}

static void failed(struct probe *probe, const char *error)
{
	printf("{\"at\":%.3f,\"ms\":%.3f,\"error\":\"%s\"}\n", probe->at, now() - probe->at, error);
	end(probe);
}

static void answered(struct probe *probe, const char *host, size_t length, unsigned long long count)
{
	printf("{\"at\":%.3f,\"ms\":%.3f,\"host\":\"%.*s\",\"count\":%llu}\n", probe->at, now() - probe->at, (int)length, host, count);
	end(probe);
}

static void begin(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	struct probe *probe = probes;
	int one = 1;

	while (probe < probes + MOST && probe->fd >= 0)
		probe++;
	if (probe == probes + MOST) {
		errno = ENOBUFS;
		die("too many open requests");
	}
	*probe = (struct probe){ .at = now(), .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) };
	if (probe->fd < 0)
		die("socket");
	setsockopt(probe->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	event.data.ptr = probe;
	if (epoll_ctl(events, EPOLL_CTL_ADD, probe->fd, &event) != 0)
		die("epoll");
	if (connect(probe->fd, (struct sockaddr *)&target, sizeof target) != 0 && errno != EINPROGRESS)
		failed(probe, name_of(errno));
}

/* True if the answer is complete. A redis keeps the connection open; the counter closes it, as HTTP/1.0 says. */
static bool complete(struct probe *probe, bool closed)
{
	const char *host, *count, *quote;
	char *line_end;

	probe->answer[probe->have] = '\0';
	if (strcmp(protocol, "redis") == 0) {
		if (probe->answer[0] != ':' || !strstr(probe->answer, "\r\n"))
			return false;
		answered(probe, "redis", strlen("redis"), strtoull(probe->answer + 1, &line_end, 10));
		return true;
	}
	host = strstr(probe->answer, "\"host\":\"");
	count = strstr(probe->answer, "\"count\":");
	if (!closed || !host || !count || strncmp(probe->answer, "HTTP/1.1 200", 12) != 0)
		return false;
	host += strlen("\"host\":\"");
	quote = strchr(host, '"');
	if (!quote)
		return false;
	answered(probe, host, (size_t)(quote - host), strtoull(count + strlen("\"count\":"), NULL, 10));
	return true;
}

static void receive(struct probe *probe)
{
	for (;;) {
		ssize_t n = recv(probe->fd, probe->answer + probe->have, ANSWER - 1 - probe->have, 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			failed(probe, name_of(errno));
			return;
		}
		probe->have += (size_t)n;
		if (complete(probe, n == 0))
			return;
		if (n == 0) {
			failed(probe, "no answer");
			return;
		}
	}
}

static void serve(struct probe *probe)
{
	int error = 0;
	socklen_t length = sizeof error;

	if (probe->fd < 0)
		return;
	getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (!error && !probe->asked) {
		ssize_t n = send(probe->fd, request, strlen(request), MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
			return;
		error = n < 0 ? errno : 0;
		probe->asked = true;
	}
	if (error)
		failed(probe, name_of(error));
	else
		receive(probe);
}

static void tick(void)
{
	uint64_t times;

	if (read(timer, &times, sizeof times) != sizeof times)
		return;
	for (struct probe *probe = probes; probe < probes + MOST; probe++)
		if (probe->fd >= 0 && now() - probe->at >= limit_ms)
			failed(probe, "timeout");
	/* A late timer has skipped some: they are not made up for, or they would all be the same moment. */
	begin();
}

static void ended(void)
{
	char bytes[64];

	if (read(STDIN_FILENO, bytes, sizeof bytes) <= 0)
		exit(0);
}

static void add(int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) != 0)
		die("epoll");
}

static int usage(void)
{
	fputs("usage: prober ADDRESS PORT INTERVAL_MS LIMIT_MS http|redis\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct epoll_event ready[PATIENCE];
	struct itimerspec every = { 0 };
	long interval_ms;

	if (argc != 6 || inet_pton(AF_INET, argv[1], &target.sin_addr) != 1)
		return usage();
	interval_ms = strtol(argv[3], NULL, 10);
	limit_ms = strtod(argv[4], NULL);
	protocol = argv[5];
	if (interval_ms <= 0 || limit_ms <= 0)
		return usage();
	request = strcmp(protocol, "redis") == 0 ? "DBSIZE\r\n" : "GET / HTTP/1.0\r\n\r\n";
	target.sin_family = AF_INET;
	target.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
	for (struct probe *probe = probes; probe < probes + MOST; probe++)
		probe->fd = -1;
	/* Ctrl-C reaches the whole group, so ignore it: the parent ends this process after its own clean-up. */
	signal(SIGINT, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	every.it_interval.tv_sec = interval_ms / 1000;
	every.it_interval.tv_nsec = interval_ms % 1000 * 1000000;
	every.it_value = every.it_interval;
	events = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (events < 0 || timer < 0 || timerfd_settime(timer, 0, &every, NULL) != 0)
		die("timer");
	add(timer, &timer);
	add(STDIN_FILENO, &events);
	for (;;) {
		int count = epoll_wait(events, ready, PATIENCE, -1);

		for (int i = 0; i < count; i++) {
			void *what = ready[i].data.ptr;

			if (what == &timer)
				tick();
			else if (what == &events)
				ended();
			else
				serve(what);
		}
	}
}
