/*
 * CRIU speaks to its parasite code in dumped processes, and to the processes that it restores, over abstract unix
 * sockets. Their names belong to a network namespace, so every process of the pod can see and use them, and CRIU does
 * not check its peer. A foreign process that connects first would count as the parasite, get CRIU's log descriptor for
 * writing, and could keep the parasite from connecting.
 *
 * 1. A dump: it accepts only dumped processes (SO_PEERCRED), and all of these are stopped but for CRIU's own code. It
 * closes all other connections, also while CRIU waits for the parasite, so that they do not fill the queue. Each
 * process gets a listener of its own, whose name is a secret until it is bound, some microseconds before the parasite
 * runs. Instead of the log the parasite gets a socket with room for a few lines, which are read at the end.
 *
 * 2. A restore: the processes pass each other descriptors, with an address in CRIU's memory that identifies them. Here
 * each message ends with a secret, and a socket filter drops messages without it, so they take no room in the queue.
 *
 * 3. A restore: CRIU connects the socket in which it keeps descriptors to itself, and then no other socket can send to
 * it. Before that, a filter drops everything.
 *
 * In a restore the names of the application's own sockets pass here as well. CRIU's names end with a random word, which
 * CRIU draws for each run.
 *
 * Long because the interposed calls share the state of one handshake.
 */
#include "control.h"
#include "work.h"

#if defined(__x86_64__)
enum { NR_accept4 = 288, NR_bind = 49, NR_connect = 42, NR_setsockopt = 54, NR_getrandom = 318, NR_socketpair = 53,
       NR_fgetxattr = 193, NR_recvfrom = 45 };
#elif defined(__aarch64__)
enum { NR_accept4 = 242, NR_bind = 200, NR_connect = 203, NR_setsockopt = 208, NR_getrandom = 278, NR_socketpair = 199,
       NR_fgetxattr = 10, NR_recvfrom = 207 };
#endif

enum { LOCAL = 1, DATAGRAMS = 2, PACKETS = 5, NO_WAIT = 04000 };
enum { SOCKET_LEVEL = 1, PEER = 17, ATTACH_FILTER = 26, DETACH_FILTER = 27, NETWORK = 71, RIGHTS = 1 };
/* How many connections to accept while looking for the parasite: twice a full queue, and those of one wait. */
enum { AT_MOST = 2 * 65535, AT_ONCE = 8192 };
enum { FUTEX_WAITS = 0, E_TIMED_OUT = 110, O_APPENDS = 01 | 02000 | O_CLOSE_ON_EXEC };
enum { PATH = 108, SECRET = 16, LABEL = 256 };

/* The prefixes of CRIU's names, and their lengths. */
static const char code_name[] = "/crtools-pr-", task_name[] = "/crtools-fd-", store_name[] = "/criu-fdstore-";
enum { CODE = sizeof code_name - 1, TASK = sizeof task_name - 1, STORE = sizeof store_name - 1 };

struct address {
	unsigned short family;
	char path[PATH];
};

static int begins(const char *text, const char *start)
{
	while (*start)
		if (*text++ != *start++)
			return 0;
	return 1;
}

static int random_bytes(void *to, long count)
{
	return raw(NR_getrandom, (long)to, count, 0, 0, 0, 0) == count;
}

/* Returns the length of an abstract name after its leading zero byte; zero for any other address. */
static long name_length(const struct address *address, unsigned length)
{
	const long letters = (long)length - 3;

	return address && letters > 0 && letters < PATH - 1 && address->family == LOCAL && !address->path[0] ? letters : 0;
}

/* ---- a dump: accepted connections ---- */

/*
 * The bound socket at which CRIU waits for the parasite; the accepted parasite; the connection that still waits for its
 * log descriptor.
 */
static int listener = -1, accepted = -1, greeted = -1;
/* Replaces the log: the parasite gets one end. */
static int lines[2] = { -1, -1 };

int control_prepare(void)
{
	return raw(NR_socketpair, LOCAL, DATAGRAMS | NO_WAIT | O_CLOSE_ON_EXEC, 0, (long)lines, 0, 0) == 0;
}

/* The gate was passed, so this is a dump. */
static int is_dump(void)
{
	return is_dumped(1);
}

static int is_own(int fd)
{
	struct {
		int pid;
		unsigned uid, gid;
	} peer = { 0 };
	unsigned length = sizeof peer;

	/* 0: a process of another pid namespace. */
	return raw(NR_getsockopt, fd, SOCKET_LEVEL, PEER, (long)&peer, (long)&length, 0) == 0 && peer.pid > 0 && is_dumped(peer.pid);
}

/* Accepts at most so many connections and closes foreign ones. Zero: the parasite has not connected yet. */
static int look_at_door(long most)
{
	while (accepted < 0 && most-- > 0) {
		const long fd = raw(NR_accept4, listener, 0, 0, O_CLOSE_ON_EXEC, 0, 0);

		if (fd < 0)
			break;
		if (is_own((int)fd))
			accepted = (int)fd;
		else
			raw(NR_close, fd, 0, 0, 0, 0, 0);
	}
	return accepted >= 0;
}

int control_waits(const int *word, long operation, long value, long *answer)
{
	const long moment[2] = { 0, 1000000 };

	if (listener < 0 || operation != FUTEX_WAITS)
		return 0;
	*answer = raw(NR_futex, (long)word, operation, value, (long)moment, 0, 0);
	if (*answer == -E_TIMED_OUT)
		look_at_door(AT_ONCE);
	return 1;
}

static long label_of(int fd, char *label)
{
	return raw(NR_fgetxattr, fd, (long)"security.selinux", (long)label, LABEL, 0, 0);
}

static unsigned long network_of(int fd)
{
	unsigned long cookie = 0;
	unsigned length = sizeof cookie;

	return raw(NR_getsockopt, fd, SOCKET_LEVEL, NETWORK, (long)&cookie, (long)&length, 0) ? 0 : cookie;
}

static int is_like(int fd, int other)
{
	char labels[2][LABEL];
	const long length = label_of(fd, labels[0]);

	if (network_of(fd) != network_of(other) || !network_of(fd) || label_of(other, labels[1]) != length)
		return 0;
	for (long i = 0; i < length; i++)
		if (labels[0][i] != labels[1][i])
			return 0;
	return 1;
}

/*
 * Replaces the socket with a new unnamed one of the same number: CRIU binds it for the next process, and clients that
 * wait at the old socket are disconnected. If the new socket differs (another network namespace or label), the parasite
 * would not find it there; then the old socket and its name stay.
 */
static int renew(int fd)
{
	const int fresh = (int)raw(NR_socket, LOCAL, PACKETS | NO_WAIT | O_CLOSE_ON_EXEC, 0, 0, 0, 0);

	int well;

	if (fresh < 0)
		return 0;
	well = is_like(fresh, fd) && raw(NR_dup3, fresh, fd, O_CLOSE_ON_EXEC, 0, 0, 0) == fd;
	raw(NR_close, fresh, 0, 0, 0, 0, 0);
	return well;
}

int accept(int fd, void *address, unsigned *length)
{
	if (!is_dump() || address || (listener >= 0 && fd != listener))
		return (int)result(raw(NR_accept4, fd, (long)address, (long)length, 0, 0, 0));
	listener = fd;
	/* The parasite has connected, and at most a full queue of connections is ahead of it. */
	if (!look_at_door(AT_MOST))
		return (int)result(-E_AGAIN);
	fd = greeted = accepted;
	accepted = -1;
	if (renew(listener))
		listener = -1;
	return fd;
}

int control_is_door(int fd)
{
	return fd == listener && fd >= 0;
}

/* Changes the name in place; CRIU passes the changed name to the parasite, too. */
static int hide(struct address *address, long letters)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[PATH];

	if (!random_bytes(bytes, letters))
		return 0;
	for (long i = 0; i < letters; i++)
		address->path[1 + i] = digits[bytes[i] & 15];
	return 1;
}

static long greet(int fd, const struct message *message, int flags)
{
	struct {
		size_t length;
		int level, type, fd, unused;
	} control = { .length = 20, .level = SOCKET_LEVEL, .type = RIGHTS, .fd = lines[1] };
	struct message other = *message;

	other.control = &control;
	other.control_length = control.length;
	return raw(NR_sendmsg, fd, (long)&other, flags, 0, 0, 0);
}

void control_end(void)
{
	char line[512];
	long length, log;

	if (lines[0] < 0)
		return;
	log = raw(NR_openat, FD_WORK, (long)"dump.log", O_APPENDS, 0, 0, 0);
	if (log < 0)
		return;
	while ((length = raw(NR_recvfrom, lines[0], (long)line, sizeof line, 0, 0, 0)) > 0)
		raw(NR_write, log, (long)line, length, 0, 0, 0);
	raw(NR_close, log, 0, 0, 0, 0, 0);
}

/* ---- a restore: accepted messages ---- */

struct instruction {
	unsigned short code;
	unsigned char yes, no;
	unsigned value;
};

struct program {
	unsigned short length;
	const struct instruction *instructions;
};

enum { LOAD_LENGTH = 0x80, LOAD_WORD = 0x20, IS_EQUAL = 0x15, RETURNS = 6 };

/* The random word that ends CRIU's names. */
static char run[PATH];
static unsigned char secret[SECRET];
static int store = -1;

static int attach(int fd, const struct program *program)
{
	return raw(NR_setsockopt, fd, SOCKET_LEVEL, ATTACH_FILTER, (long)program, sizeof *program, 0) == 0;
}

/* Drops every message. */
static int deafen(int fd)
{
	const struct instruction nothing = { .code = RETURNS, .value = 0 };
	const struct program program = { 1, &nothing };

	return attach(fd, &program);
}

/* Passes only messages that consist of an address and then the secret. */
static int hear_secret(int fd)
{
	enum { WORDS = SECRET / 4, COUNT = 2 + 2 * WORDS + 2 };
	struct instruction all[COUNT] = {
		{ .code = LOAD_LENGTH },
		{ .code = IS_EQUAL, .no = COUNT - 3, .value = sizeof(void *) + SECRET },
	};
	const struct program program = { COUNT, all };

	for (unsigned i = 0; i < WORDS; i++) {
		const unsigned char *word = secret + 4 * i;
		struct instruction *at = &all[2 + 2 * i];

		at[0] = (struct instruction){ .code = LOAD_WORD, .value = sizeof(void *) + 4 * i };
		at[1] = (struct instruction){
			.code = IS_EQUAL,
			.no = (unsigned char)(COUNT - 1 - (2 + 2 * i + 1) - 1),
			.value = (unsigned)word[0] << 24 | (unsigned)word[1] << 16 | (unsigned)word[2] << 8 | word[3],
		};
	}
	all[COUNT - 2] = (struct instruction){ .code = RETURNS, .value = 0xffffffff };
	all[COUNT - 1] = (struct instruction){ .code = RETURNS, .value = 0 };
	return attach(fd, &program);
}

/* Handles the first name that a restore binds, `/criu-fdstore-NUMBER-RUN`; no restored process exists yet. */
static int learn_run(const char *name, long letters)
{
	long start = STORE;

	while (start < letters && name[start++] != '-')
		;
	/* A short word could be guessed beforehand. */
	if (letters - start < 16 || !random_bytes(secret, SECRET))
		return 0;
	for (long i = start; i < letters; i++)
		run[i - start] = name[i];
	return 1;
}

static int is_of_task(const struct address *address, unsigned length)
{
	const long letters = name_length(address, length);
	const char *name = address ? address->path + 1 : "", *at = name + TASK;

	if (!run[0] || letters <= TASK || !begins(name, task_name))
		return 0;
	while (at < name + letters && *at >= '0' && *at <= '9')
		at++;
	if (at == name + letters || *at++ != '-')
		return 0;
	for (long i = 0; at + i < name + letters; i++)
		if (at[i] != run[i])
			return 0;
	return !run[name + letters - at];
}

static long send_with_secret(int fd, const struct message *message, int flags)
{
	const struct piece pieces[2] = { *message->pieces, { secret, SECRET } };
	struct message other = *message;
	long answer;

	other.pieces = pieces;
	other.count = 2;
	answer = raw(NR_sendmsg, fd, (long)&other, flags, 0, 0, 0);
	return answer > SECRET ? answer - SECRET : answer;
}

/* ---- both ---- */

int control_sends(int fd, const struct message *message, int flags, long *answer)
{
	if (fd == greeted && fd >= 0) {
		greeted = -1;
		*answer = greet(fd, message, flags);
		return 1;
	}
	if (message->count != 1 || !is_of_task(message->address, message->address_length))
		return 0;
	*answer = send_with_secret(fd, message, flags);
	return 1;
}

int bind(int fd, struct address *address, unsigned length)
{
	const long letters = name_length(address, length);
	int well = 1;

	if (letters > CODE && is_dump() && begins(address->path + 1, code_name)) {
		listener = fd;
		well = hide(address, letters);
	} else if (letters > STORE && !is_dump() && !run[0] && begins(address->path + 1, store_name)) {
		store = fd;
		well = learn_run(address->path + 1, letters) && deafen(fd);
	} else if (is_of_task(address, length)) {
		well = hear_secret(fd);
	}
	return (int)result(well ? raw(NR_bind, fd, (long)address, length, 0, 0, 0) : -E_PERM);
}

int connect(int fd, const void *address, unsigned length)
{
	const long answer = raw(NR_connect, fd, (long)address, length, 0, 0, 0);

	if (answer == 0 && fd == store && fd >= 0) {
		store = -1;
		/* The socket now receives only from itself. */
		raw(NR_setsockopt, fd, SOCKET_LEVEL, DETACH_FILTER, (long)&answer, sizeof(int), 0);
	}
	return (int)result(answer);
}
