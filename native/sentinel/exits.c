#include "exits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/genetlink.h>
#include <linux/taskstats.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "netlink.h"
#include "watch.h"

/* The filter has room for so many processes. The descriptors of further ones tell alone. */
enum { FOLLOWED_MAX = 1000, ROOM = 8192 };

/*
 * Where a message has what the filter looks at: the length of the first attribute, which is about the thread that ends, and the
 * number of that thread. The number of the process is as far behind in the second attribute, if there is one.
 */
enum { LENGTH_AT = NLMSG_HDRLEN + GENL_HDRLEN, NUMBER_AT = LENGTH_AT + 2 * NLA_HDRLEN };

struct exits {
	struct source source;
	struct sentinel *sentinel;
	bool cannot;
};

/* Returns the number in an attribute of an attribute; 0: there is none. */
static pid_t number(struct span in, uint16_t outer, uint16_t inner)
{
	struct span found = netlink_attribute(netlink_attribute(in, outer), inner);
	uint32_t value = 0;

	if (found.length == sizeof value)
		memcpy(&value, found.at, sizeof value);
	return (pid_t)value;
}

/* The thread that ends, and the process if that is its last thread of several. */
static void heard(struct sentinel *sentinel, struct span body)
{
	pid_t thread, process;

	if (body.length < GENL_HDRLEN)
		return;
	body = (struct span){ body.at + GENL_HDRLEN, body.length - GENL_HDRLEN };
	thread = number(body, TASKSTATS_TYPE_AGGR_PID, TASKSTATS_TYPE_PID);
	process = number(body, TASKSTATS_TYPE_AGGR_TGID, TASKSTATS_TYPE_TGID);
	if (thread > 0)
		watch_exiting(sentinel, thread);
	if (process > 0 && process != thread)
		watch_exiting(sentinel, process);
}

static void ready(struct source *source, uint32_t events)
{
	struct exits *exits = (struct exits *)source;
	uint8_t bytes[ROOM];
	ssize_t n;

	(void)events;
	/* ENOBUFS: some are lost, and their descriptors tell. */
	while (source->fd >= 0 && (n = recv(source->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
		struct span received = { bytes, (size_t)n }, body;
		struct nlmsghdr header;

		while (netlink_next(&received, &header, &body) == NETLINK_MESSAGE)
			if (header.nlmsg_type >= NLMSG_MIN_TYPE)
				heard(exits->sentinel, body);
	}
}

static struct sock_filter step(uint16_t code, uint32_t value)
{
	return (struct sock_filter){ .code = code, .k = value };
}

/* Takes a message that has one of these numbers in the accumulator. Returns the number of steps. */
static size_t take_any(struct sock_filter *steps, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		steps[2 * i] = step(BPF_JMP | BPF_JEQ | BPF_K, htonl((uint32_t)pids[i]));
		steps[2 * i].jf = 1;
		steps[2 * i + 1] = step(BPF_RET | BPF_K, UINT32_MAX);
	}
	return 2 * count;
}

/*
 * Has the kernel drop messages about other processes: each that ends on the machine is one, and a tenant chooses how many end. It loads
 * numbers as those of a network, and these are numbers of this machine, whose first byte is the lowest one. Returns 0 or an errno.
 */
static int filter(int netlink, const pid_t *pids, size_t count)
{
	/* Static, as it is large. */
	static struct sock_filter steps[16 + 4 * FOLLOWED_MAX];
	struct sock_fprog program = { .filter = steps };
	size_t at = 0;

	steps[at++] = step(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT);
	at += take_any(steps + at, pids, count);
	/* The second attribute is behind the first one, whose length is rounded up to four bytes. */
	steps[at++] = step(BPF_LD | BPF_B | BPF_ABS, LENGTH_AT + 1);
	steps[at++] = step(BPF_ALU | BPF_LSH | BPF_K, 8);
	steps[at++] = step(BPF_MISC | BPF_TAX, 0);
	steps[at++] = step(BPF_LD | BPF_B | BPF_ABS, LENGTH_AT);
	steps[at++] = step(BPF_ALU | BPF_OR | BPF_X, 0);
	steps[at++] = step(BPF_ALU | BPF_ADD | BPF_K, NLA_ALIGNTO - 1);
	steps[at++] = step(BPF_ALU | BPF_AND | BPF_K, (uint32_t) ~(NLA_ALIGNTO - 1));
	steps[at++] = step(BPF_MISC | BPF_TAX, 0);
	steps[at++] = step(BPF_LD | BPF_W | BPF_IND, NUMBER_AT);
	at += take_any(steps + at, pids, count);
	steps[at++] = step(BPF_RET | BPF_K, 0);
	program.len = (unsigned short)at;
	return setsockopt(netlink, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 ? 0 : errno;
}

/* Returns 0 or an errno. */
static int filter_watched(const struct sentinel *sentinel, int netlink)
{
	static pid_t pids[FOLLOWED_MAX];
	size_t count = watched_pids(sentinel, pids, FOLLOWED_MAX);
	int error;

	/* Kernels before 6.10 have room for some hundred processes (net.core.optmem_max). The descriptors of the others tell alone. */
	while ((error = filter(netlink, pids, count)) == ENOMEM && count > 1)
		count /= 2;
	return error;
}

/* Asks for one thing with one text, and returns the answer; .length is 0, with errno, if there is none. */
static struct span ask(int netlink, uint16_t type, uint8_t command, uint16_t attribute_type, const char *text, uint8_t *answer)
{
	struct {
		struct nlmsghdr header;
		struct genlmsghdr command;
		struct nlattr attribute;
		char text[256];
	} question = {
		.header = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.command = { .cmd = command, .version = 1 },
		.attribute = { .nla_type = attribute_type },
	};
	size_t length = strlen(text) + 1;
	struct span none = { answer, 0 };
	ssize_t n;

	if (length > sizeof question.text) {
		errno = EMSGSIZE;
		return none;
	}
	memcpy(question.text, text, length);
	question.attribute.nla_len = (uint16_t)(NLA_HDRLEN + length);
	question.header.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN((size_t)question.attribute.nla_len));
	if (netlink_send(netlink, &question, question.header.nlmsg_len) != 0)
		return none;
	n = recv(netlink, answer, ROOM, MSG_DONTWAIT);
	return (struct span){ answer, n < 0 ? 0 : (size_t)n };
}

/* Returns the kernel's number of taskstats; 0: it has none. */
static uint16_t family(int netlink)
{
	uint8_t answer[ROOM];
	struct span received = ask(netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME, answer), body;
	struct nlmsghdr header;
	uint16_t id = 0;

	if (netlink_next(&received, &header, &body) != NETLINK_MESSAGE || header.nlmsg_type != GENL_ID_CTRL || body.length < GENL_HDRLEN)
		return 0;
	body = netlink_attribute((struct span){ body.at + GENL_HDRLEN, body.length - GENL_HDRLEN }, CTRL_ATTR_FAMILY_ID);
	if (body.length == sizeof id)
		memcpy(&id, body.at, sizeof id);
	netlink_drain(netlink);
	return id;
}

/* Asks for the ends on all processors. Returns 0 or an errno. */
static int enlist(int netlink)
{
	char processors[200] = "";
	uint8_t answer[ROOM];
	struct nlmsghdr header;
	struct span received, body;
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, processors, sizeof processors - 1);
	uint16_t id = family(netlink);

	if (fd >= 0)
		close(fd);
	if (n <= 0 || id == 0)
		return ENOENT;
	processors[strcspn(processors, "\n")] = '\0';
	received = ask(netlink, id, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, processors, answer);
	if (netlink_next(&received, &header, &body) != NETLINK_MESSAGE || header.nlmsg_type != NLMSG_ERROR)
		return EBADMSG;
	return netlink_verdict(body);
}

/* Returns 0 or an errno. */
static int begin(struct sentinel *sentinel, struct exits *exits)
{
	int netlink = netlink_open(NETLINK_GENERIC), error = netlink < 0 ? errno : enlist(netlink);

	exits->source = (struct source){ .fd = netlink, .ready = ready, .urgent = true };
	exits->sentinel = sentinel;
	if (!error)
		error = filter_watched(sentinel, netlink);
	if (!error && !loop_add(&sentinel->loop, &exits->source, EPOLLIN))
		error = errno;
	if (error && netlink >= 0)
		close(netlink);
	sentinel->exits = error ? NULL : &exits->source;
	return error;
}

void exits_follow(struct sentinel *sentinel)
{
	/* Static, so that memory it refers to at exit counts as in use and not as leaked. */
	static struct exits exits;
	int error = 0;

	if (exits.cannot)
		return;
	if (sentinel->watches)
		error = sentinel->exits ? filter_watched(sentinel, sentinel->exits->fd) : begin(sentinel, &exits);
	if (error) {
		exits.cannot = true;
		log_line("info", "no statistics of ends, so traces have to do", ",\"error\":\"%s\"", strerror(error));
	}
	if ((error || !sentinel->watches) && sentinel->exits) {
		loop_close(&sentinel->loop, sentinel->exits);
		sentinel->exits = NULL;
	}
}
