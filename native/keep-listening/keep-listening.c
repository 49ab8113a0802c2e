/*
 * Keeps the listening TCP sockets of processes open while these end and others take their place, so that clients wait
 * in the sockets' queues and meet no closed port.
 *
 *   keep-listening all|recent PID:START...
 *   keep-listening open PID:START ADDRESS/PORT[/6]...
 *
 * `open` keeps sockets that no process has yet: it binds these addresses in the network of the process. /6: an address of IPv6
 * whose socket serves no clients of IPv4. An address that cannot be bound is left out.
 *
 * START is the time at which a process began, in clock ticks since the boot; a process that began at another time has
 * reused the number. Prints one line, `kept COUNT`, once the sockets survive their processes, and ends when its standard
 * input ends. The connections in a queue then move to the socket that listens at the same address by that time
 * (tcp_migrate_req, Linux 5.14), if that has been bound with SO_REUSEPORT by the same user, as CRIU binds it. `recent`
 * closes connections that have waited for longer than PATIENCE_MS and have sent nothing since: an application that is
 * stopped accepts none, and a scraper would add one every few seconds, until the queue is full. Exit codes: 0; 2 usage;
 * 1 a failure, with a line on standard error; 3 not supported by this kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "addresses.h"
#include "fail.h"
#include "number.h"
#include "process_stat.h"
#include "queues.h"

/* A tenant chooses how many its application has. The program keeps no more than these. */
enum { MOST_DESCRIPTORS = 65536, CANNOT = 3 };

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static const char migrate[] = "/proc/sys/net/ipv4/tcp_migrate_req";

static int looked_at;
/* The kernel's number of the network whose sockets are kept. */
static uint64_t network;

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static uint64_t network_of(int fd)
{
	uint64_t number = 0;
	socklen_t length = sizeof number;

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &number, &length) == 0 ? number : 0;
}

static bool has(int fd, int option, int value)
{
	int is;
	socklen_t length = sizeof is;

	return getsockopt(fd, SOL_SOCKET, option, &is, &length) == 0 && is == value;
}

/* Notes a listening socket, unless another descriptor of it has been noted. */
static bool note(int fd)
{
	struct sockaddr_in6 address;
	socklen_t length = sizeof address;
	struct stat status;

	if (fstat(fd, &status) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return false;
	for (int i = 0; i < kept_count; i++)
		if (kept[i].number == status.st_ino)
			return false;
	kept[kept_count].number = status.st_ino;
	kept[kept_count].fd = fd;
	kept[kept_count++].address = address;
	return true;
}

/* Takes a copy of a descriptor, which stays open if it is a listening TCP socket. */
static void keep(int process, const char *number)
{
	const int yes = 1;
	int fd = (int)syscall(SYS_pidfd_getfd, process, atoi(number), 0);

	if (fd < 0)
		return;
	if (network_of(fd) != network || !has(fd, SO_PROTOCOL, IPPROTO_TCP) || !has(fd, SO_ACCEPTCONN, 1) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 || !note(fd))
		close(fd);
}

static void open_one(const char *text)
{
	struct listening_address address;
	int fd = kept_count < MOST_SOCKETS && parse_address(text, &address) ? open_address(&address) : -1;

	if (fd >= 0 && !note(fd))
		close(fd);
}

static bool is_socket(pid_t pid, const char *fd)
{
	char path[64], name[8];

	snprintf(path, sizeof path, "/proc/%d/fd/%.20s", pid, fd);
	return readlink(path, name, sizeof name) == sizeof name && memcmp(name, "socket:[", sizeof name) == 0;
}

static void keep_all(pid_t pid, int process)
{
	char path[64];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	directory = opendir(path);
	while (directory && kept_count < MOST_SOCKETS && looked_at < MOST_DESCRIPTORS && (entry = readdir(directory))) {
		looked_at++;
		if (is_number(entry->d_name) && is_socket(pid, entry->d_name))
			keep(process, entry->d_name);
	}
	if (directory)
		closedir(directory);
}

/* Enters the network namespace of that process, but never the node's own. Returns false with errno. */
static bool enter(pid_t pid)
{
	char path[64];
	struct stat there, here;
	bool entered;
	int space;

	snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0)
		return false;
	errno = EPERM;
	entered = fstat(space, &there) == 0 && stat("/proc/self/ns/net", &here) == 0 && there.st_ino != here.st_ino &&
		  setns(space, CLONE_NEWNET) == 0;
	close(space);
	return entered;
}

/* Has queues of this network move from now on. Returns an exit code. */
static int let_queues_move(void)
{
	int file = open(migrate, O_WRONLY | O_CLOEXEC);
	bool written = file >= 0 && write(file, "1", 1) == 1;

	if (!written)
		return errno == ENOENT ? CANNOT : failed(migrate);
	close(file);
	return 0;
}

/* Parses PID:START. */
static bool parse_target(const char *text, pid_t *pid, uint64_t *start)
{
	const char *colon = strchr(text, ':');
	int64_t number, ticks;

	if (!colon || !parse_digits(text, (size_t)(colon - text), INT32_MAX, &number) || !parse_number(colon + 1, INT64_MAX, &ticks))
		return false;
	*pid = (pid_t)number;
	*start = (uint64_t)ticks;
	return true;
}

/* Returns a descriptor of the process; -1: the process is gone, or another one has its number. */
static int open_process(pid_t pid, uint64_t start)
{
	struct process_stat stat;
	int process = (int)syscall(SYS_pidfd_open, pid, 0);

	if (process >= 0 && (!process_stat(pid, &stat) || stat.start != start)) {
		close(process);
		return -1;
	}
	return process;
}

/* Enters the network of the first process. Returns an exit code. */
static int begin(pid_t pid)
{
	int code = enter(pid) ? let_queues_move() : failed("network of the process");
	int own = code == 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	if (code != 0)
		return code;
	network = own >= 0 ? network_of(own) : 0;
	if (own >= 0)
		close(own);
	return network == 0 ? CANNOT : 0;
}

static int usage(void)
{
	fputs("usage: keep-listening all|recent PID:START...\n"
	      "       keep-listening open PID:START ADDRESS/PORT[/6]...\n",
	      stderr);
	return 2;
}

/* Each argument is a process; with `open` only the first one, and the others are addresses. */
static bool understood(int argc, char **argv)
{
	const bool opens = strcmp(argv[1], "open") == 0;
	struct listening_address address;
	uint64_t start;
	pid_t pid;

	if (!opens && strcmp(argv[1], "all") != 0 && strcmp(argv[1], "recent") != 0)
		return false;
	for (int i = 2; i < argc; i++)
		if (opens && i > 2 ? !parse_address(argv[i], &address) : !parse_target(argv[i], &pid, &start))
			return false;
	return true;
}

/* Takes the sockets of a process, or opens those in its network. Returns an exit code. */
static int look_at(const char *target, int addresses, char **address)
{
	uint64_t start = 0;
	pid_t pid = 0;
	int process = parse_target(target, &pid, &start) ? open_process(pid, start) : -1;
	int code = process < 0 || network != 0 ? 0 : begin(pid);

	if (process < 0)
		return 0;
	if (code == 0 && addresses == 0)
		keep_all(pid, process);
	for (int i = 0; code == 0 && i < addresses; i++)
		open_one(address[i]);
	close(process);
	return code;
}

int main(int argc, char **argv)
{
	ssize_t length;
	int code = 0;
	char byte;

	if (argc < 3 || !understood(argc, argv))
		return usage();
	if (strcmp(argv[1], "open") == 0)
		code = look_at(argv[2], argc - 3, argv + 3);
	else
		for (int i = 2; code == 0 && i < argc; i++)
			code = look_at(argv[i], 0, NULL);
	if (code != 0)
		return code;
	if (strcmp(argv[1], "recent") == 0 && !close_forgotten())
		return failed("connections");
	printf("kept %d\n", kept_count);
	if (fflush(stdout) != 0)
		return failed("output");
	do
		length = read(STDIN_FILENO, &byte, 1);
	while (length > 0 || (length < 0 && errno == EINTR));
	let_go();
	return 0;
}
