/*
 * The counter of images/counter as a program that holds one of each kind of kernel object that can be saved. GET / adds
 * one. GET /peek tries all objects and reports for each whether it still works. GET /healthz. `kinds probe` requests
 * /healthz of this container, as the command of a probe. FILES: directory of its files (/tmp).
 *
 * Long because each kind of kernel object needs its own code to make and to try it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define WORD "understudy"
enum { WORD_SIZE = sizeof WORD - 1, PORT = 8080, TICK_MS = 20, DESCRIPTORS = 512 };

static const char *files = "/tmp";
static unsigned long long count, ticks;
static volatile sig_atomic_t alarms;

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static const char *in_files(const char *name)
{
	static char path[8][256];
	static unsigned turn;
	char *it = path[turn++ % 8];

	snprintf(it, sizeof path[0], "%s/%s", files, name);
	return it;
}

static bool wrote(int fd)
{
	return write(fd, WORD, WORD_SIZE) == WORD_SIZE;
}

static bool reads(int fd)
{
	char got[WORD_SIZE];

	return read(fd, got, sizeof got) == WORD_SIZE && !memcmp(got, WORD, WORD_SIZE);
}

/* Each holds data that was written before the dump and not read; after reading, the data is put back for the next
 * time. */
static int pipe_ends[2], fifo, pair[2];

static void make_pipes(void)
{
	must(!pipe2(pipe_ends, O_CLOEXEC) && wrote(pipe_ends[1]), "pipe");
	unlink(in_files("fifo"));
	must(!mkfifo(in_files("fifo"), 0600), "mkfifo");
	fifo = open(in_files("fifo"), O_RDWR | O_CLOEXEC);
	must(fifo >= 0 && wrote(fifo), "fifo");
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) && wrote(pair[0]), "socketpair");
}

static bool try_pipe(void)
{
	return reads(pipe_ends[0]) && wrote(pipe_ends[1]);
}

static bool try_fifo(void)
{
	return reads(fifo) && wrote(fifo);
}

static bool try_socketpair(void)
{
	return reads(pair[1]) && wrote(pair[0]);
}

/* A listener with a path and an abstract one, each with an open connection. */
static struct sockaddr_un names[2];
static socklen_t lengths[2];
static int unix_listener[2], unix_client[2], unix_server[2];

static void make_unix(void)
{
	for (int i = 0; i < 2; i++) {
		names[i].sun_family = AF_UNIX;
		snprintf(names[i].sun_path + i, sizeof names[i].sun_path - 1, "%s", i ? "kinds" : in_files("socket"));
		lengths[i] = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(names[i].sun_path + i));
		if (!i)
			unlink(names[i].sun_path);
		unix_listener[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		unix_client[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(!bind(unix_listener[i], (struct sockaddr *)&names[i], lengths[i]) && !listen(unix_listener[i], 8) &&
			     !connect(unix_client[i], (struct sockaddr *)&names[i], lengths[i]),
		     "unix");
		unix_server[i] = accept4(unix_listener[i], NULL, NULL, SOCK_CLOEXEC);
		must(unix_server[i] >= 0, "accept");
	}
}

static bool try_unix(int i)
{
	int fresh = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), other = -1;
	bool good = wrote(unix_client[i]) && reads(unix_server[i]) &&
		    !connect(fresh, (struct sockaddr *)&names[i], lengths[i]) &&
		    (other = accept4(unix_listener[i], NULL, NULL, SOCK_CLOEXEC)) >= 0 && wrote(fresh) && reads(other);

	close(fresh);
	close(other);
	return good;
}

static bool try_unix_path(void)
{
	return try_unix(0);
}

static bool try_unix_abstract(void)
{
	return try_unix(1);
}

static int counter, timer, signals, event_poll;

static void make_events(void)
{
	struct itimerspec every = { { 0, TICK_MS * 1000000 }, { 0, TICK_MS * 1000000 } };
	struct epoll_event interest = { .events = EPOLLIN };
	sigset_t usr1;

	counter = eventfd(7, EFD_CLOEXEC | EFD_NONBLOCK);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	must(!timerfd_settime(timer, 0, &every, NULL), "timerfd");
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signals = signalfd(-1, &usr1, SFD_CLOEXEC | SFD_NONBLOCK);
	event_poll = epoll_create1(EPOLL_CLOEXEC);
	must(counter >= 0 && signals >= 0 && !epoll_ctl(event_poll, EPOLL_CTL_ADD, counter, &interest), "events");
}

static bool try_eventfd(void)
{
	uint64_t value = 0;

	return read(counter, &value, sizeof value) == sizeof value && value == 7 &&
	       write(counter, &value, sizeof value) == sizeof value;
}

static bool try_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(event_poll, &event, 1, 0) == 1;
}

static bool try_timerfd(void)
{
	uint64_t passed;

	for (int i = 0; i < 50; i++) {
		if (read(timer, &passed, sizeof passed) == sizeof passed) {
			ticks += passed;
			return true;
		}
		usleep(TICK_MS * 1000);
	}
	return false;
}

static bool try_signalfd(void)
{
	struct signalfd_siginfo info;

	kill(getpid(), SIGUSR1);
	return read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1;
}

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static void make_timer(void)
{
	struct itimerval every = { { 0, TICK_MS * 1000 }, { 0, TICK_MS * 1000 } };

	signal(SIGALRM, on_alarm);
	must(!setitimer(ITIMER_REAL, &every, NULL), "setitimer");
}

static bool try_timer(void)
{
	sig_atomic_t before = alarms;

	for (int i = 0; i < 50 && alarms == before; i++)
		usleep(TICK_MS * 1000);
	return alarms != before;
}

static int notify;

static void make_inotify(void)
{
	mkdir(in_files("watched"), 0700);
	notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	must(inotify_add_watch(notify, in_files("watched"), IN_CREATE) > 0, "inotify");
}

static bool try_inotify(void)
{
	char events[1024];
	int fd = open(in_files("watched/file"), O_CREAT | O_CLOEXEC | O_WRONLY, 0600);
	bool good = fd >= 0 && read(notify, events, sizeof events) > 0;

	close(fd);
	unlink(in_files("watched/file"));
	return good;
}

static int deleted, appended, locked, posix_locked, memory_file;
static unsigned long long *mapped, *mapped_memory, *mapped_shm, *pinned;

static void *map(int fd)
{
	void *at = ftruncate(fd, 4096) ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

static int fresh_file(const char *name, int flags)
{
	int fd = open(in_files(name), flags | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0, name);
	return fd;
}

static void make_files(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	deleted = fresh_file("deleted", O_RDWR);
	must(wrote(deleted) && !unlink(in_files("deleted")), "deleted");
	appended = fresh_file("appended", O_WRONLY | O_APPEND);
	locked = fresh_file("locked", O_RDWR);
	posix_locked = fresh_file("posix-locked", O_RDWR);
	must(!flock(locked, LOCK_EX | LOCK_NB) && !fcntl(posix_locked, F_SETLK, &whole), "locks");
	mapped = map(fresh_file("mapped", O_RDWR));
	memory_file = memfd_create("kinds", MFD_CLOEXEC);
	mapped_memory = map(memory_file);
	mapped_shm = map(shm_open("/kinds", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	pinned = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(pinned != MAP_FAILED && !mlock(pinned, 4096), "mlock");
}

static bool try_deleted(void)
{
	struct stat about;

	return lseek(deleted, 0, SEEK_SET) == 0 && reads(deleted) && !fstat(deleted, &about) && about.st_nlink == 0;
}

static bool try_append(void)
{
	struct stat about;

	return (fcntl(appended, F_GETFL) & O_APPEND) && !stat(in_files("appended"), &about) &&
	       (unsigned long long)about.st_size == count;
}

static bool try_flock(void)
{
	int fd = open(in_files("locked"), O_RDWR | O_CLOEXEC);
	bool good = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	close(fd);
	return good;
}

static bool try_posix_lock(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	/* An OFD lock, which this descriptor owns, conflicts with the process's own lock. The test uses
	 * `posix_locked` itself: closing any other descriptor of the file would release the process's lock. */
	int fd = posix_locked;

	return !fcntl(fd, F_OFD_GETLK, &whole) && whole.l_type == F_WRLCK;
}

static bool try_mapped_file(void)
{
	unsigned long long seen = 0;
	int fd = open(in_files("mapped"), O_RDONLY | O_CLOEXEC);
	bool good = read(fd, &seen, sizeof seen) == sizeof seen && seen == count && *mapped == count;

	close(fd);
	return good;
}

static bool try_memfd(void)
{
	unsigned long long seen = 0;

	return pread(memory_file, &seen, sizeof seen, 0) == sizeof seen && seen == count && *mapped_memory == count;
}

static bool try_shm(void)
{
	unsigned long long seen = 0;
	int fd = shm_open("/kinds", O_RDONLY | O_CLOEXEC, 0);
	bool good = read(fd, &seen, sizeof seen) == sizeof seen && seen == count && *mapped_shm == count;

	close(fd);
	return good;
}

static bool try_mlock(void)
{
	char line[256];
	unsigned long kilobytes = 0;
	FILE *status = fopen("/proc/self/status", "re");

	if (!status)
		return false;
	while (fgets(line, sizeof line, status))
		sscanf(line, "VmLck: %lu", &kilobytes);
	fclose(status);
	return kilobytes >= 4 && *pinned == count;
}

static int udp;
static struct sockaddr_in udp_name = { .sin_family = AF_INET };

static void make_udp(void)
{
	socklen_t length = sizeof udp_name;

	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	udp_name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(udp, (struct sockaddr *)&udp_name, length) &&
		     !getsockname(udp, (struct sockaddr *)&udp_name, &length),
	     "udp");
}

static bool try_udp(void)
{
	return sendto(udp, WORD, WORD_SIZE, 0, (struct sockaddr *)&udp_name, sizeof udp_name) == WORD_SIZE && reads(udp);
}

/* A child that echoes, and a pidfd for it. */
static int to_child[2], from_child[2], child_handle;
static pid_t child;

static void make_child(void)
{
	char byte;

	must(!pipe2(to_child, O_CLOEXEC) && !pipe2(from_child, O_CLOEXEC), "pipe");
	child = fork();
	if (child == 0) {
		close(to_child[1]);
		while (read(to_child[0], &byte, 1) == 1 && write(from_child[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	child_handle = (int)syscall(SYS_pidfd_open, child, 0);
	must(child > 0 && child_handle >= 0, "child");
}

static bool try_child(void)
{
	char byte = 'x', back = 0;

	return write(to_child[1], &byte, 1) == 1 && read(from_child[0], &back, 1) == 1 && back == byte;
}

static bool try_pidfd(void)
{
	return syscall(SYS_pidfd_send_signal, child_handle, 0, NULL, 0) == 0;
}

static void make_rest(void)
{
	struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };

	must(!setrlimit(RLIMIT_NOFILE, &limit) && !chdir(files), "rest");
	umask(027);
}

static bool try_surroundings(void)
{
	struct rlimit limit;
	char where[256];
	mode_t mask = umask(027);

	return mask == 027 && getcwd(where, sizeof where) && !strcmp(where, files) &&
	       !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == DESCRIPTORS;
}

static const struct kind {
	const char *name;
	void (*make)(void);
	bool (*works)(void);
} kinds[] = {
	{ "pipe", make_pipes, try_pipe },
	{ "fifo", NULL, try_fifo },
	{ "socketpair", NULL, try_socketpair },
	{ "unixPath", make_unix, try_unix_path },
	{ "unixAbstract", NULL, try_unix_abstract },
	{ "eventfd", make_events, try_eventfd },
	{ "epoll", NULL, try_epoll },
	{ "timerfd", NULL, try_timerfd },
	{ "signalfd", NULL, try_signalfd },
	{ "timer", make_timer, try_timer },
	{ "inotify", make_inotify, try_inotify },
	{ "deleted", make_files, try_deleted },
	{ "append", NULL, try_append },
	{ "flock", NULL, try_flock },
	{ "posixLock", NULL, try_posix_lock },
	{ "mappedFile", NULL, try_mapped_file },
	{ "memfd", NULL, try_memfd },
	{ "shm", NULL, try_shm },
	{ "mlock", NULL, try_mlock },
	{ "udp", make_udp, try_udp },
	{ "child", make_child, try_child },
	{ "pidfd", NULL, try_pidfd },
	{ "surroundings", make_rest, try_surroundings },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void add(void)
{
	count++;
	*mapped = *mapped_memory = *mapped_shm = *pinned = count;
	must(write(appended, "x", 1) == 1, "append");
}

static size_t answer(const char *request, char *body, size_t size)
{
	size_t length;

	if (!strncmp(request, "GET /healthz ", 13))
		return (size_t)snprintf(body, size, "ok");
	if (!strncmp(request, "GET / ", 6))
		add();
	length = (size_t)snprintf(body, size, "{\"count\":%llu,\"ticks\":%llu", count, ticks);
	for (int i = 0; i < KINDS; i++)
		length += (size_t)snprintf(body + length, size - length, ",\"%s\":%s", kinds[i].name,
					   kinds[i].works() ? "true" : "false");
	return length + (size_t)snprintf(body + length, size - length, "}");
}

static void serve(int client)
{
	char request[4096], body[4096], response[8192];
	ssize_t got = read(client, request, sizeof request - 1);
	size_t length;

	if (got <= 0)
		return;
	request[got] = 0;
	length = answer(request, body, sizeof body);
	length = (size_t)snprintf(response, sizeof response,
				  "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", length, body);
	if (write(client, response, length) < 0)
		return;
}

static int probe(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char request[] = "GET /healthz HTTP/1.1\r\n\r\n";
	char reply[256] = "";

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) || write(fd, request, sizeof request - 1) < 0 ||
	    read(fd, reply, sizeof reply - 1) <= 0)
		return 1;
	return strncmp(reply, "HTTP/1.1 200", 12) != 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int on = 1, listener;

	if (argc > 1 && !strcmp(argv[1], "probe"))
		return probe();
	if (getenv("FILES"))
		files = getenv("FILES");
	for (int i = 0; i < KINDS; i++)
		if (kinds[i].make)
			kinds[i].make();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 128), "listen");
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0)
			continue;
		serve(client);
		close(client);
	}
}
