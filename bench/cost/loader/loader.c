/*
 * An open load on a redis: it sends requests at a steady pace and does not wait for answers. In C, because it shares
 * the processors with the redis that it measures.
 *
 *   loader ADDRESS PORT KEYS VALUE_BYTES PER_SECOND SECONDS PID
 *
 * Half of the requests read a key, half overwrite one with other random bytes, on 16 connections in turn. It checks the
 * state of process PID every ms. A stopped process counts as frozen, and so does a traced one: its tracer may run it
 * for purposes of its own.
 *
 * Standard output: a line `REQUESTS FREEZES`, then doubles in this machine's byte order, in ms since the first request
 * was due. For each request, in the order in which they were due: when its answer came. For each freeze of the process:
 * when it began and when it ended. Exit codes: 0; 2 usage; 1 a failure, with a line on standard error. It ends with its
 * parent.
 *
 * Long because a load generator is one program of one file, without a library.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 16
#define TICK_NS 250000
#define LOOK_MS 1.0
#define PATIENCE_MS 30000.0
#define POOL (1u << 20)
#define FREEZES 4096
#define LINE 64

struct connection {
	int fd;
	/* Data to send: the bytes from `sent` to `length`. */
	char *out;
	size_t sent, length, room;
	bool waits; /* for the socket to be writable again */
	/* Answers so far: requests go to the connections in turn, so the next answer is for request answers *
	 * CONNECTIONS + the connection's own number. */
	size_t answers;
	/* A partly received line, and bytes of a value that are still to come, including its line end. */
	char line[LINE];
	size_t held, owed;
};

struct load {
	struct connection connections[CONNECTIONS];
	long keys, value_bytes;
	double per_ms, start;
	size_t count, issued, done;
	double *answered;
	double freezes[FREEZES][2];
	size_t frozen;
	char pool[POOL];
	uint64_t random;
};

static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("loader: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* xorshift64* */
static uint64_t next_random(struct load *load)
{
	load->random ^= load->random >> 12;
	load->random ^= load->random << 25;
	load->random ^= load->random >> 27;
	return load->random * 2685821657736338717u;
}

static char *room_for(struct connection *connection, size_t bytes)
{
	if (connection->sent == connection->length)
		connection->sent = connection->length = 0;
	if (connection->length + bytes > connection->room) {
		connection->room = (connection->length + bytes) * 2;
		connection->out = realloc(connection->out, connection->room);
		if (!connection->out)
			fail("no memory for unsent requests");
	}
	return connection->out + connection->length;
}

static void put_request(struct load *load, struct connection *connection)
{
	uint64_t random = next_random(load);
	size_t bytes = (size_t)load->value_bytes;
	char *at = room_for(connection, bytes + 128), *from = at;
	long key = (long)((random >> 32) % (uint64_t)load->keys);

	if (random & 1) {
		at += sprintf(at, "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012ld\r\n", key);
	} else {
		at += sprintf(at, "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012ld\r\n$%zu\r\n", key, bytes);
		memcpy(at, load->pool + (random >> 1) % (POOL - bytes), bytes);
		at += bytes;
		memcpy(at, "\r\n", 2);
		at += 2;
	}
	connection->length += (size_t)(at - from);
}

static void flush(struct connection *connection)
{
	while (!connection->waits && connection->sent < connection->length) {
		ssize_t sent = send(connection->fd, connection->out + connection->sent, connection->length - connection->sent,
				    MSG_NOSIGNAL);

		if (sent >= 0)
			connection->sent += (size_t)sent;
		else if (errno == EAGAIN)
			connection->waits = true;
		else if (errno != EINTR)
			fail("send: %s", strerror(errno));
	}
}

static void answer(struct load *load, struct connection *connection, double now)
{
	size_t request = connection->answers++ * CONNECTIONS + (size_t)(connection - load->connections);

	if (request >= load->issued)
		fail("redis sent an answer without a request");
	load->answered[request] = now;
	load->done++;
}

static void take_line(struct load *load, struct connection *connection, double now)
{
	connection->line[connection->held] = '\0';
	connection->held = 0;
	if (connection->line[0] == '-')
		fail("%s", connection->line);
	if (connection->line[0] == '$' && connection->line[1] != '-')
		connection->owed = strtoul(connection->line + 1, NULL, 10) + 2;
	else
		answer(load, connection, now);
}

static void take(struct load *load, struct connection *connection, const char *data, size_t length, double now)
{
	while (length > 0) {
		if (connection->owed > 0) {
			size_t taken = length < connection->owed ? length : connection->owed;

			data += taken;
			length -= taken;
			connection->owed -= taken;
			if (connection->owed == 0)
				answer(load, connection, now);
			continue;
		}
		if (*data == '\n')
			take_line(load, connection, now);
		else if (connection->held + 1 < sizeof connection->line)
			connection->line[connection->held++] = *data;
		data++;
		length--;
	}
}

/* Reads until EAGAIN: epoll (edge-triggered) does not report the rest of the data again. */
static void receive(struct load *load, struct connection *connection)
{
	static char buffer[256 * 1024];

	for (;;) {
		ssize_t got = recv(connection->fd, buffer, sizeof buffer, 0);

		if (got > 0)
			take(load, connection, buffer, (size_t)got, now_ms() - load->start);
		else if (got == 0)
			fail("redis closed the connection");
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			fail("recv: %s", strerror(errno));
	}
}

static bool stands_still(int status)
{
	char text[2048];
	ssize_t length = pread(status, text, sizeof text - 1, 0);
	const char *state, *tracer;

	if (length <= 0)
		fail("the process is gone");
	text[length] = '\0';
	state = strstr(text, "State:\t");
	tracer = strstr(text, "TracerPid:\t");
	if (!state || !tracer)
		fail("the process status has no state");
	return state[7] == 'T' || state[7] == 't' || tracer[11] != '0';
}

static void open_connection(struct load *load, int events, const char *address, int port, size_t number)
{
	struct connection *connection = &load->connections[number];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection };
	int one = 1;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		fail("%s is not an IPv4 address", address);
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&to, sizeof to) != 0 ||
	    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
	    fcntl(connection->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    epoll_ctl(events, EPOLL_CTL_ADD, connection->fd, &event) != 0)
		fail("%s:%d: %s", address, port, strerror(errno));
}

static int open_timer(int events)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = TICK_NS }, .it_value = { .tv_nsec = TICK_NS } };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer < 0 || timerfd_settime(timer, 0, &every, NULL) != 0 ||
	    epoll_ctl(events, EPOLL_CTL_ADD, timer, &event) != 0)
		fail("timer: %s", strerror(errno));
	return timer;
}

static void issue(struct load *load, double now)
{
	size_t due = (size_t)(now * load->per_ms) + 1;

	if (due > load->count)
		due = load->count;
	if (load->issued == due)
		return;
	for (; load->issued < due; load->issued++)
		put_request(load, &load->connections[load->issued % CONNECTIONS]);
	for (size_t i = 0; i < CONNECTIONS; i++)
		flush(&load->connections[i]);
}

static void run(struct load *load, int events, int timer, int status, double limit)
{
	double looked = 0, from = -1;

	load->start = now_ms();
	while (load->done < load->count) {
		struct epoll_event ready[CONNECTIONS + 1];
		double now = now_ms() - load->start;
		int count;

		if (now > limit)
			fail("%zu of %zu requests got no answer", load->count - load->done, load->count);
		issue(load, now);
		if (now - looked >= LOOK_MS) {
			bool still = stands_still(status);

			if (still && from < 0) {
				from = looked;
			} else if (!still && from >= 0) {
				if (load->frozen == FREEZES)
					fail("more than %d freezes", FREEZES);
				load->freezes[load->frozen][0] = from;
				load->freezes[load->frozen++][1] = now;
				from = -1;
			}
			looked = now;
		}
		count = epoll_wait(events, ready, CONNECTIONS + 1, -1);
		if (count < 0 && errno != EINTR)
			fail("epoll: %s", strerror(errno));
		for (int i = 0; i < count; i++) {
			struct connection *connection = ready[i].data.ptr;
			uint64_t ticks;

			if (!connection) {
				/* The number of missed ticks does not matter: the clock decides how many requests are due. */
				if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
					fail("timer: %s", strerror(errno));
				continue;
			}
			if (ready[i].events & EPOLLOUT) {
				connection->waits = false;
				flush(connection);
			}
			if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				receive(load, connection);
		}
	}
}

static void tell(const struct load *load)
{
	printf("%zu %zu\n", load->count, load->frozen);
	fwrite(load->answered, sizeof *load->answered, load->count, stdout);
	fwrite(load->freezes, sizeof *load->freezes, load->frozen, stdout);
	if (fflush(stdout) != 0)
		fail("standard output: %s", strerror(errno));
}

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value <= 0) {
		fprintf(stderr, "loader: %s is not a positive number\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static struct load load;
	char path[64];
	int events = epoll_create1(EPOLL_CLOEXEC), timer, status;
	long seconds;

	if (argc != 8) {
		fputs("usage: loader ADDRESS PORT KEYS VALUE_BYTES PER_SECOND SECONDS PID\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	load.keys = number(argv[3]);
	load.value_bytes = number(argv[4]);
	load.per_ms = (double)number(argv[5]) / 1e3;
	seconds = number(argv[6]);
	if (load.value_bytes >= POOL) {
		fprintf(stderr, "loader: a value must have less than %u bytes\n", POOL);
		return 2;
	}
	load.count = (size_t)((double)seconds * 1e3 * load.per_ms);
	load.answered = calloc(load.count, sizeof *load.answered);
	if (!load.answered || getrandom(&load.random, sizeof load.random, 0) != sizeof load.random)
		fail("no memory, or no randomness");
	load.random |= 1;
	for (size_t i = 0; i < POOL; i += sizeof load.random) {
		uint64_t some = next_random(&load);

		memcpy(load.pool + i, &some, sizeof some);
	}
	snprintf(path, sizeof path, "/proc/%ld/status", number(argv[7]));
	status = open(path, O_RDONLY | O_CLOEXEC);
	if (status < 0)
		fail("%s: %s", path, strerror(errno));
	timer = open_timer(events);
	for (size_t i = 0; i < CONNECTIONS; i++)
		open_connection(&load, events, argv[1], (int)number(argv[2]), i);
	run(&load, events, timer, status, (double)seconds * 1e3 + PATIENCE_MS);
	tell(&load);
	return 0;
}
