/*
 * A restore closes every TCP connection (--tcp-close), so of all that CRIU dumps of one only its flags matter. But CRIU
 * reads thirty socket options of each, and opens a file in /proc. That takes 40 us, during which the application is
 * stopped; with 500 connections it exceeds everything else in the dump of a small application.
 *
 * So a connection gets the option values of a model socket, which this library creates and reads once for each option
 * and address family. And the text of /proc/PID/fdinfo is composed from the fields that all sockets share and from the
 * socket's flags. For a listener, and anything else that is no connection, CRIU's calls reach the kernel.
 */
#include "connections.h"
#include "track.h"

enum { STREAM = 1, IPV4 = 2, IPV6 = 10, TCP = 6 };
enum { LEVEL_SOCKET = 1, LEVEL_IP = 0, LEVEL_TCP = 6, LEVEL_IPV6 = 41 };
enum { GET_TYPE = 3, GET_DEVICE = 25, GET_PEER = 28, GET_PROTOCOL = 38, GET_DOMAIN = 39, GET_TCP_INFO = 11 };
enum { GET_FLAGS = 3, KIND = 0170000, SOCKET = 0140000 };
enum { ANSWERS = 64, VALUE = 32 };

/* The kernel's layout; only the file type is used. */
struct status {
#if defined(__x86_64__)
	unsigned long device, number, links;
	unsigned mode, owner;
	unsigned long rest[14];
#else
	unsigned long device, number;
	unsigned mode, links;
	unsigned long rest[13];
#endif
};

struct file_system {
	unsigned long words[15];
};

/* The kernel's answer for an unconnected socket of that family. */
struct answer {
	int family, level, name;
	unsigned room, length;
	long result;
	unsigned char value[VALUE];
};

static struct answer answers[ANSWERS];
static int count;
/* Never connected, one for each family. */
static int model4 = -1, model6 = -1;
/* Fields that all sockets share. */
static struct file_system sockets_are_on;
static char mount[24];

/* The socket whose options CRIU reads, which begin with its domain. Once known, also whether it is a connection. */
static struct {
	int fd, family, protocol, is_connection;
} now = { .fd = -1 };

/* CRIU examines each file in this order: fstat, fstatfs, fdinfo. */
static struct {
	int socket, told;
} look = { .socket = -1, .told = -1 };
/* Stands for that file of /proc; the text is read once. */
static int stand_in = -1;
static char text[96];
static long text_length;

static int is(const char *text_at, const char *word)
{
	while (*word)
		if (*text_at++ != *word++)
			return 0;
	return 1;
}

void connections_prepare(void)
{
	char about[32], content[256];
	long length;
	int models[2];

	for (int i = 0; i < 2; i++)
		models[i] = (int)raw(NR_socket, i ? IPV6 : IPV4, STREAM | O_CLOSE_ON_EXEC, TCP, 0, 0, 0);
	model4 = models[0];
	/* A kernel without IPv6 has no IPv6 connections. */
	model6 = models[1];
	if (model4 < 0)
		return;
	append_number(append(about, "/proc/self/fdinfo/"), (unsigned long)model4);
	length = read_file(about, content, sizeof content - 1);
	if (length <= 0 || raw(NR_fstatfs, model4, (long)&sockets_are_on, 0, 0, 0, 0))
		return;
	content[length] = 0;
	for (const char *line = content; *line; line++)
		if ((line == content || line[-1] == '\n') && is(line, "mnt_id:\t")) {
			char *to = mount;

			for (line += 8; *line >= '0' && *line <= '9' && to < mount + sizeof mount - 1; line++)
				*to++ = *line;
			*to = 0;
			break;
		}
	/* Only a number that no other file has: nothing reads from this socket. */
	if (mount[0])
		stand_in = (int)raw(NR_socket, IPV4, STREAM | O_CLOSE_ON_EXEC, TCP, 0, 0, 0);
}

/* ---- options ---- */

static long ask(int fd, int level, int name, void *value, unsigned *length)
{
	return raw(NR_getsockopt, fd, level, name, (long)value, (long)length, 0);
}

/* True for the options that identify a socket or tell its state. */
static int is_its_own(int level, int name)
{
	return (level == LEVEL_SOCKET &&
		(name == GET_TYPE || name == GET_PROTOCOL || name == GET_DOMAIN || name == GET_PEER || name == GET_DEVICE)) ||
	       (level == LEVEL_TCP && name == GET_TCP_INFO) ||
	       (level != LEVEL_SOCKET && level != LEVEL_TCP && level != LEVEL_IP && level != LEVEL_IPV6);
}

/* A socket with a peer is connected, or was until the peer left. */
static int has_peer(int fd)
{
	char address[128];
	unsigned length = sizeof address;

	return raw(NR_getpeername, fd, (long)address, (long)&length, 0, 0, 0) == 0;
}

static void learn(int fd, int level, int name, const void *value)
{
	const int number = *(const int *)value;

	if (level != LEVEL_SOCKET)
		return;
	if (name == GET_DOMAIN) {
		now.fd = fd;
		now.family = number;
		now.protocol = now.is_connection = 0;
	} else if (now.fd == fd && name == GET_PROTOCOL) {
		now.protocol = number;
	} else if (now.fd == fd && name == GET_TYPE) {
		now.is_connection = now.protocol == TCP && number == STREAM && has_peer(fd);
	}
}

static struct answer *answer_of(int level, int name, unsigned room)
{
	struct answer *answer;
	const int model = now.family == IPV6 ? model6 : model4;

	for (int i = 0; i < count; i++) {
		answer = &answers[i];
		if (answer->family == now.family && answer->level == level && answer->name == name && answer->room == room)
			return answer;
	}
	if (count == ANSWERS || room > VALUE || model < 0)
		return (void *)0;
	answer = &answers[count];
	*answer = (struct answer){ .family = now.family, .level = level, .name = name, .room = room, .length = room };
	answer->result = ask(model, level, name, room ? answer->value : (void *)0, &answer->length);
	/* If the model has no answer, each socket gets the kernel's own. */
	if (answer->result || answer->length > room)
		return (void *)0;
	count++;
	return answer;
}

int getsockopt(int fd, int level, int name, void *value, unsigned *length)
{
	const unsigned room = *length;
	struct answer *answer;
	long asked;

	if (now.fd == fd && now.is_connection && !is_its_own(level, name) && (answer = answer_of(level, name, room))) {
		for (unsigned i = 0; i < answer->length; i++)
			((unsigned char *)value)[i] = answer->value[i];
		*length = answer->length;
		return 0;
	}
	asked = ask(fd, level, name, value, length);
	if (stand_in >= 0 && asked == 0 && room >= sizeof(int) && *length >= sizeof(int))
		learn(fd, level, name, value);
	return (int)result(asked);
}

/* ---- fdinfo of a socket ---- */

int fstat64(int fd, struct status *status)
{
	const long answer = raw(NR_fstat, fd, (long)status, 0, 0, 0, 0);

	look.told = -1;
	look.socket = stand_in >= 0 && answer == 0 && (status->mode & KIND) == SOCKET ? fd : -1;
	return (int)result(answer);
}

int fstat(int fd, struct status *status)
{
	return fstat64(fd, status);
}

int connections_file_system(int fd, void *status)
{
	if (look.socket < 0 || look.socket != fd)
		return 0;
	*(struct file_system *)status = sockets_are_on;
	look.told = fd;
	return 1;
}

/* True for a decimal number. */
static int is_number(const char *at)
{
	if (!*at)
		return 0;
	for (; *at; at++)
		if (*at < '0' || *at > '9')
			return 0;
	return 1;
}

int connections_open(const char *path)
{
	const int fd = look.told;
	char digits[24], *to = digits + sizeof digits - 1;
	long flags;

	look.told = look.socket = -1;
	if (fd < 0 || !is(path, "fdinfo/") || !is_number(path + 7))
		return -1;
	flags = raw(NR_fcntl, fd, GET_FLAGS, 0, 0, 0, 0);
	if (flags < 0)
		return -1;
	*to = 0;
	do {
		*--to = (char)('0' + (flags & 7));
		flags >>= 3;
	} while (flags);
	text_length = append(append(append(append(append(text, "pos:\t0\nflags:\t0"), to), "\nmnt_id:\t"), mount), "\n") - text;
	return stand_in;
}

long read(int fd, void *buffer, size_t room)
{
	long length = text_length;

	if (fd != stand_in || fd < 0) {
		const long got = raw(NR_read, fd, (long)buffer, (long)room, 0, 0, 0);

		track_reads(fd, buffer, got);
		return result(got);
	}
	if (length > (long)room)
		length = (long)room;
	for (long i = 0; i < length; i++)
		((char *)buffer)[i] = text[i];
	text_length = 0;
	return length;
}

int close(int fd)
{
	if (fd == stand_in && fd >= 0)
		return 0;
	if (fd == now.fd)
		now.fd = -1;
	return (int)result(raw(NR_close, fd, 0, 0, 0, 0, 0));
}
