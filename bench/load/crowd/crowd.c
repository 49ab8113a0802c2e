/*
 * Many clients of one redis that survive its deaths. Each holds a connection; they send small messages in turn at a
 * steady pace and reconnect when they lose theirs. Each message is INCR of one key, so its answer is its number.
 *
 *   crowd ADDRESS PORT CONNECTIONS PER_SECOND KNOCK_MS
 *
 * Every KNOCK_MS (0: never) a knock: one more connection is opened, gets a PING, and is closed. PER_SECOND may be 0.
 *
 * Standard input: `kill` begins a life: connections opened from then on count as those of the next redis. `tell`
 * requests one line of JSON about the present life. Times are Unix ms. The program ends with its standard input.
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
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 1000000
#define MOST 4096
/* Maximum of concurrent knocks; a connect times out after LIMIT_MS. */
#define KNOCKS 512
#define LIMIT_MS 1000.0
/* A client without an answer for this long reconnects. */
#define PATIENCE_MS 5000.0
/* The pause grows after each failed attempt, as in client libraries. */
#define PAUSE_MS 50.0
#define LONGEST_PAUSE_MS 500.0
/* A connection that owes this many answers is skipped. */
#define OWED 64
#define RING (1u << 20)
#define SLOW_MS 900.0
#define SLOW_KEPT 64

enum state { CLOSED, CONNECTING, UP };

struct connection {
	int fd;
	enum state state;
	bool knocks;
	unsigned life, owed, attempts;
	double since, due; /* start of its connect; time of its next connect */
	double waits;	   /* since when it has waited for an answer */
	uint64_t number;   /* from a partly received line */
	bool started;
};

struct slow {
	double at, ms;
	bool knock;
};

/* The report about the present life. */
struct life {
	double last, first, longest; /* last answer of the previous life; first of this one; longest connect */
	uint64_t value;	       /* the lowest answer */
	unsigned connected, refused, hung, knocked, silent;
	struct slow slow[SLOW_KEPT];
	unsigned slows;
};

static struct crowd {
	struct connection connections[MOST], knocks[KNOCKS];
	unsigned count, turn;
	struct sockaddr_in to;
	int events;
	double per_ms, knock_ms, knocked, start;
	uint64_t issued, unsent;
	double answered[RING]; /* time of the answer, by the number of the message */
	double newest; /* time of the newest answer */
	unsigned life;
	struct life now;
} crowd;

static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("crowd: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void lose(struct connection *it, double now)
{
	double pause = PAUSE_MS * (it->attempts + 1);

	close(it->fd);
	it->attempts++;
	it->state = CLOSED;
	it->due = now + (pause > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : pause);
}

static void connected(const struct connection *it, double now, bool hung)
{
	double ms = now - it->since;

	if (it->life != crowd.life)
		return;
	if (ms > crowd.now.longest)
		crowd.now.longest = ms;
	crowd.now.hung += hung;
	if (ms >= SLOW_MS && crowd.now.slows < SLOW_KEPT)
		crowd.now.slow[crowd.now.slows++] = (struct slow){ it->since, ms, it->knocks };
}

static void begin(struct connection *it, double now)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.ptr = it };
	int one = 1;

	it->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (it->fd < 0 || setsockopt(it->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
	    epoll_ctl(crowd.events, EPOLL_CTL_ADD, it->fd, &event) != 0)
		fail("socket: %s", strerror(errno));
	it->state = CONNECTING;
	it->life = crowd.life;
	it->owed = 0;
	it->started = false;
	it->since = now;
	if (connect(it->fd, (struct sockaddr *)&crowd.to, sizeof crowd.to) != 0 && errno != EINPROGRESS) {
		crowd.now.refused++;
		lose(it, now);
	}
}

static void ask(struct connection *it, const char *what, double now)
{
	ssize_t length = (ssize_t)strlen(what);

	/* Very little data is in flight: if the socket does not take all of it, the connection is broken. */
	if (send(it->fd, what, (size_t)length, MSG_NOSIGNAL) != length)
		lose(it, now);
	else if (it->owed++ == 0)
		it->waits = now;
}

static void take_answer(struct connection *it, double now)
{
	it->owed--;
	it->waits = now;
	if (it->knocks) {
		crowd.now.knocked += it->life == crowd.life;
		close(it->fd);
		it->state = CLOSED;
		return;
	}
	crowd.answered[it->number % RING] = crowd.newest = now;
	/* From the previous redis, which may still have answered after `kill`. */
	if (it->life != crowd.life) {
		crowd.now.last = now;
		return;
	}
	if (crowd.now.first == 0)
		crowd.now.first = now;
	if (crowd.now.value == 0 || it->number < crowd.now.value)
		crowd.now.value = it->number;
}

static void take(struct connection *it, const char *data, ssize_t length, double now)
{
	for (; length > 0 && it->state == UP; data++, length--) {
		if (*data == '-')
			fail("redis answered with an error");
		if (*data == ':' || *data == '+') {
			it->number = 0;
			it->started = true;
		} else if (*data >= '0' && *data <= '9') {
			it->number = it->number * 10 + (uint64_t)(*data - '0');
		} else if (*data == '\n' && it->started) {
			it->started = false;
			take_answer(it, now);
		}
	}
}

static void receive(struct connection *it)
{
	char buffer[4096];

	while (it->state == UP) {
		ssize_t got = recv(it->fd, buffer, sizeof buffer, 0);

		if (got > 0)
			take(it, buffer, got, now_ms());
		else if (got < 0 && errno == EAGAIN)
			return;
		else if (got == 0 || errno != EINTR)
			lose(it, now_ms());
	}
}

static void look(struct connection *it, uint32_t seen)
{
	double now = now_ms();
	int error = 0;
	socklen_t size = sizeof error;

	if (it->state == CONNECTING && seen & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		getsockopt(it->fd, SOL_SOCKET, SO_ERROR, &error, &size);
		connected(it, now, error == ETIMEDOUT);
		if (error) {
			crowd.now.refused += it->life == crowd.life;
			lose(it, now);
			return;
		}
		it->state = UP;
		it->attempts = 0;
		crowd.now.connected += it->life == crowd.life && !it->knocks;
		if (it->knocks)
			ask(it, "PING\r\n", now);
	}
	if (it->state == UP && seen & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		receive(it);
}

/* A knock is not retried, and it ends if its answer does not come in time. */
static void keep_up(struct connection *it, double now)
{
	if (it->state == CONNECTING && now - it->since > LIMIT_MS) {
		connected(it, now, true);
		lose(it, now);
	} else if (it->knocks && it->state == UP && now - it->since > LIMIT_MS) {
		close(it->fd);
		it->state = CLOSED;
	} else if (!it->knocks && it->state == UP && it->owed > 0 && now - it->waits > PATIENCE_MS) {
		crowd.now.silent++;
		lose(it, now);
	} else if (!it->knocks && it->state == CLOSED && now >= it->due) {
		begin(it, now);
	}
}

static void tick(double now)
{
	uint64_t due = (uint64_t)((now - crowd.start) * crowd.per_ms);

	for (; crowd.issued + crowd.unsent < due;) {
		struct connection *it = &crowd.connections[crowd.turn++ % crowd.count];

		if (it->state == UP && it->owed < OWED) {
			ask(it, "*2\r\n$4\r\nINCR\r\n$5\r\ncrowd\r\n", now);
			crowd.issued++;
		} else {
			crowd.unsent++;
		}
	}
	for (unsigned i = 0; i < crowd.count; i++)
		keep_up(&crowd.connections[i], now);
	for (unsigned i = 0; i < KNOCKS; i++) {
		struct connection *it = &crowd.knocks[i];

		keep_up(it, now);
		if (crowd.knock_ms > 0 && it->state == CLOSED && now - crowd.knocked >= crowd.knock_ms) {
			crowd.knocked = now;
			begin(it, now);
		}
	}
}

/* Returns when the newest answered message at or below `value` was answered; 0 if none was. */
static double answered_at(uint64_t value)
{
	for (; value > 0; value--)
		if (crowd.answered[value % RING] > 0)
			return crowd.answered[value % RING];
	return 0;
}

static void tell(void)
{
	const struct life *now = &crowd.now;
	unsigned up = 0;

	for (unsigned i = 0; i < crowd.count; i++)
		up += crowd.connections[i].state == UP && crowd.connections[i].life == crowd.life;
	printf("{\"up\":%u,\"first\":%.3f,\"value\":%lu,\"saved\":%.3f,\"last\":%.3f,\"issued\":%lu,\"unsent\":%lu,\"connected\":%u,\"refused\":%u,\"hung\":%u,\"knocked\":%u,\"silent\":%u,"
	       "\"longest\":%.3f,\"slow\":[",
	       up, now->first, now->value, now->value ? answered_at(now->value - 1) : 0, now->last,
	       crowd.issued, crowd.unsent, now->connected, now->refused, now->hung, now->knocked, now->silent, now->longest);
	for (unsigned i = 0; i < now->slows; i++)
		printf("%s{\"at\":%.3f,\"ms\":%.3f,\"knock\":%s}", i ? "," : "", now->slow[i].at, now->slow[i].ms,
		       now->slow[i].knock ? "true" : "false");
	puts("]}");
	if (fflush(stdout) != 0)
		fail("standard output: %s", strerror(errno));
}

/* Returns false at the end of the input. */
static bool obey(void)
{
	char order[16];
	ssize_t got = read(STDIN_FILENO, order, sizeof order);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	for (ssize_t i = 0; i < got; i++)
		if (order[i] == 'k') {
			crowd.life++;
			crowd.now = (struct life){ .last = crowd.newest };
		} else if (order[i] == 't') {
			tell();
		}
	return got > 0;
}

static void watch_fd(int fd, uint32_t events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	if (epoll_ctl(crowd.events, EPOLL_CTL_ADD, fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
}

static int open_timer(void)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = TICK_NS }, .it_value = { .tv_nsec = TICK_NS } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer < 0 || timerfd_settime(timer, 0, &every, NULL) != 0)
		fail("timer: %s", strerror(errno));
	return timer;
}

static void run(int timer)
{
	for (;;) {
		struct epoll_event ready[256];
		int count = epoll_wait(crowd.events, ready, 256, -1);

		for (int i = 0; i < count; i++) {
			uint64_t ticks;

			if (ready[i].data.ptr == &crowd.turn) {
				if (!obey())
					return;
			} else if (ready[i].data.ptr) {
				look(ready[i].data.ptr, ready[i].events);
			} else {
				/* The number of missed ticks does not matter: the clock decides how many requests are due. */
				if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
					fail("timer: %s", strerror(errno));
				tick(now_ms());
			}
		}
	}
}

static long number(const char *text, long most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value < 0 || value > most) {
		fprintf(stderr, "crowd: %s is not a number up to %ld\n", text, most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	int timer;

	if (argc != 6) {
		fputs("usage: crowd ADDRESS PORT CONNECTIONS PER_SECOND KNOCK_MS\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	crowd.to.sin_family = AF_INET;
	crowd.to.sin_port = htons((uint16_t)number(argv[2], 65535));
	if (inet_pton(AF_INET, argv[1], &crowd.to.sin_addr) != 1)
		fail("%s is not an IPv4 address", argv[1]);
	crowd.count = (unsigned)number(argv[3], MOST);
	crowd.per_ms = crowd.count ? (double)number(argv[4], 1000000) / 1e3 : 0;
	crowd.knock_ms = (double)number(argv[5], 1000);
	for (unsigned i = 0; i < KNOCKS; i++)
		crowd.knocks[i].knocks = true;
	crowd.events = epoll_create1(EPOLL_CLOEXEC);
	timer = open_timer();
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	watch_fd(timer, EPOLLIN, NULL);
	watch_fd(STDIN_FILENO, EPOLLIN, &crowd.turn);
	crowd.start = now_ms();
	run(timer);
	return 0;
}
