/*
 * CRIU asks the kernel for all TCP sockets of IPv4 and of IPv6. For each answer the kernel walks its whole table of
 * connections, which grows with the machine's memory: half a millisecond with 24 GiB, during which the application is
 * stopped. So a second thread asks the same on an idle processor as soon as all processes have stopped, while CRIU
 * seizes them. When CRIU asks, its socket is replaced by the one with the answer.
 *
 * CRIU asks the kernel itself if that thread has not begun by then, for want of a processor, or if its question
 * differs.
 */
#include "control.h"
#include "sockets.h"

enum { NETLINK = 16, RAW = 3, SOCKET_DIAG = 4, IPV4 = 2, IPV6 = 10, TCP = 6 };
enum { DUMP_REQUEST = 0x301, BY_FAMILY = 20, CRIU_SEQUENCE = 24680 };
/* Established, SYN sent, both FIN waits, close wait, last ACK, listening, closing. */
enum { STATES = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 };
enum { SOCKET_LEVEL = 1, NETWORK_COOKIE = 71 };
enum { WAIT_HERE = 128, WAKE_HERE = 129 };
enum { SIG_SET_MASK = 2, SIG_SET_BYTES = 8 };
/*
 * Shares memory, files and signal handlers, but not the directory: a thread that shares it cannot enter a mount
 * namespace.
 */
enum { THREAD = 0x100 | 0x400 | 0x800 | 0x10000 };

/* The layouts of <linux/netlink.h> and <linux/inet_diag.h>. */
struct request {
	unsigned length;
	unsigned short type, flags;
	unsigned sequence, sender;
	unsigned char family, protocol, extensions, unused;
	unsigned states;
	unsigned ports, rest[11];
};

enum progress { WAITING, BEGUN, ANSWERED, OVER };

static struct question {
	struct request request;
	int fd, progress;
} questions[] = { { .request.family = IPV4 }, { .request.family = IPV6 } };
enum { QUESTIONS = sizeof questions / sizeof *questions };

static char stack[8192] __attribute__((aligned(64)));
static int standing;
/* CRIU itself, once the thread exists. */
static long dumper;
static int used;

/* From the C library, which this library does not link to. */
extern int clone(int (*function)(void *), void *top, int flags, void *argument, ...) __attribute__((weak));

static void wait_while(int *word, int value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		raw(NR_futex, (long)word, WAIT_HERE, value, 0, 0, 0);
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	raw(NR_futex, (long)word, WAKE_HERE, 1, 0, 0, 0);
}

/* Claims a question: only one of the two threads succeeds. */
static int begin(struct question *question)
{
	int waiting = WAITING;

	return __atomic_compare_exchange_n(&question->progress, &waiting, BEGUN, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static int ask(void *unused)
{
	(void)unused;
	wait_while(&standing, 0);
	for (int i = 0; i < QUESTIONS; i++) {
		struct question *question = &questions[i];

		if (begin(question))
			set(&question->progress, raw(NR_sendto, question->fd, (long)&question->request,
						     sizeof question->request, 0, 0, 0) > 0
							 ? ANSWERED
							 : OVER);
	}
	return 0;
}

void sockets_prepare(void)
{
	const unsigned long all = ~0UL;
	unsigned long before;

	if (!clone)
		return;
	for (int i = 0; i < QUESTIONS; i++) {
		struct request *request = &questions[i].request;

		questions[i].fd = (int)raw(NR_socket, NETLINK, RAW | O_CLOSE_ON_EXEC, SOCKET_DIAG, 0, 0, 0);
		if (questions[i].fd < 0)
			return;
		request->length = sizeof *request;
		request->type = BY_FAMILY;
		request->flags = DUMP_REQUEST;
		request->sequence = CRIU_SEQUENCE;
		request->protocol = TCP;
		request->states = STATES;
	}
	/* CRIU's signal handlers must not run on this thread. */
	raw(NR_rt_sigprocmask, SIG_SET_MASK, (long)&all, (long)&before, SIG_SET_BYTES, 0, 0);
	if (clone(ask, stack + sizeof stack, THREAD, (void *)0) > 0)
		dumper = own_pid();
	raw(NR_rt_sigprocmask, SIG_SET_MASK, (long)&before, 0, SIG_SET_BYTES, 0, 0);
}

void sockets_ask(void)
{
	set(&standing, 1);
}

int sockets_were_asked(void)
{
	return used;
}

static int same_request(const struct request *a, const struct request *b)
{
	return a->length == b->length && a->type == b->type && a->flags == b->flags && a->sequence == b->sequence &&
	       a->family == b->family && a->protocol == b->protocol && a->extensions == b->extensions &&
	       a->states == b->states && a->ports == b->ports;
}

static struct question *question_of(const struct message *message)
{
	if (!dumper || message->count != 1 || message->pieces->length != sizeof(struct request))
		return (void *)0;
	for (int i = 0; i < QUESTIONS; i++)
		if (same_request(message->pieces->start, &questions[i].request))
			return &questions[i];
	return (void *)0;
}

/* Zero: the kernel does not tell. */
static unsigned long network_of(int fd)
{
	unsigned long cookie = 0;
	unsigned length = sizeof cookie;

	return raw(NR_getsockopt, fd, SOCKET_LEVEL, NETWORK_COOKIE, (long)&cookie, (long)&length, 0) ? 0 : cookie;
}

/*
 * Replaces the socket by one with the answer, if there is one. Once for each question: the answer describes one moment.
 */
static int become(int fd, struct question *question)
{
	unsigned long network = network_of(fd);

	/* A child of CRIU has a copy of this memory, in which no thread will ever report an answer. */
	if (own_pid() != dumper || !network || network != network_of(question->fd))
		return 0;
	if (begin(question))
		question->progress = OVER;
	wait_while(&question->progress, BEGUN);
	if (question->progress == OVER)
		return 0;
	question->progress = OVER;
	return raw(NR_dup3, question->fd, fd, O_CLOSE_ON_EXEC, 0, 0, 0) == fd;
}

long sendmsg(int fd, const struct message *message, int flags)
{
	struct question *question = question_of(message);
	long answer;

	if (control_sends(fd, message, flags, &answer))
		return result(answer);
	if (question && become(fd, question)) {
		used++;
		return sizeof question->request;
	}
	return result(raw(NR_sendmsg, fd, (long)message, flags, 0, 0, 0));
}
