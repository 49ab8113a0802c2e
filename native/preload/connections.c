/*
 * A TCP connection is closed in what is restored (--tcp-close): of all that CRIU asks of it only its flags mean anything
 * there. But it asks the kernel for thirty options of each, and opens a file in /proc: 40 us, in which the application stands
 * still; of 500 connections that is more than everything else of a small application.
 *
 * So the options of a connection are those of a socket that was made here, which is asked once for each option and address
 * family. And what /proc would say of a socket is put together from what is the same for all sockets and from its flags. A
 * listener, and whatever else is no connection, is asked as before.
 */
#include "connections.h"

enum { STREAM = 1, IPV4 = 2, IPV6 = 10, TCP = 6 };
enum { LEVEL_SOCKET = 1, LEVEL_IP = 0, LEVEL_TCP = 6, LEVEL_IPV6 = 41 };
enum { GET_TYPE = 3, GET_DEVICE = 25, GET_PEER = 28, GET_PROTOCOL = 38, GET_DOMAIN = 39, GET_TCP_INFO = 11 };
enum { GET_FLAGS = 3, KIND = 0170000, SOCKET = 0140000 };
enum { ANSWERS = 64, VALUE = 32 };

/* As the kernel fills it; only the kind of a file is looked at. */
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

/* What was answered of a socket of that family that is no connection. */
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
/* What all sockets have in common. */
static struct file_system sockets_are_on;
static char mount[24];

/* The socket that CRIU is asking about, since it asked for its domain; whether it is a connection, once that is known. */
static struct {
	int fd, family, protocol, is_connection;
} now = { .fd = -1 };

/* CRIU looks at each file in this order: its status, its file system, what /proc says of it. */
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
	/* A kernel without IPv6 has no connections of it. */
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
	/* Nobody reads it: a descriptor that is nothing else. */
	if (mount[0])
		stand_in = (int)raw(NR_socket, IPV4, STREAM | O_CLOSE_ON_EXEC, TCP, 0, 0, 0);
}

/* ---- options ---- */

static long ask(int fd, int level, int name, void *value, unsigned *length)
{
	return raw(NR_getsockopt, fd, level, name, (long)value, (long)length, 0);
}

/* Those that say which socket it is, and in which state. */
static int is_its_own(int level, int name)
{
	return (level == LEVEL_SOCKET &&
		(name == GET_TYPE || name == GET_PROTOCOL || name == GET_DOMAIN || name == GET_PEER || name == GET_DEVICE)) ||
	       (level == LEVEL_TCP && name == GET_TCP_INFO) ||
	       (level != LEVEL_SOCKET && level != LEVEL_TCP && level != LEVEL_IP && level != LEVEL_IPV6);
}

/* Who has a peer is connected, or was until the peer left. */
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
	/* One that cannot be answered so is asked of each. */
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

/* ---- what /proc says of a socket ---- */

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

/* A number, and nothing else. */
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

	if (fd != stand_in || fd < 0)
		return result(raw(NR_read, fd, (long)buffer, (long)room, 0, 0, 0));
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
