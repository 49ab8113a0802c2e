/*
 * Reports facts about processes that /proc does not show outside their namespaces.
 *
 *   inspect PID...
 *
 * Prints one line for each finding, then `done`:
 *   socket PID FD PROTOCOL    the kernel's name of a socket's protocol, as in /proc/net/protocols; the first one of each
 *   sysv shm|sem|msg COUNT    System V objects in the first process's IPC namespace, if there are any
 * Skips processes that are gone. Exit codes: 0; 2 usage; 1 a failure, with a line on standard error.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fail.h"

static bool is_number(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!isdigit((unsigned char)*text))
			return false;
	return true;
}

enum { PROTOCOLS = 32, NAME = 64 };

/*
 * The protocols reported for the current process. No process uses more kinds than this, and no reader needs more lines.
 */
static char told[PROTOCOLS][NAME];
static size_t told_count;

static bool is_told(const char *protocol)
{
	for (size_t i = 0; i < told_count; i++)
		if (strcmp(told[i], protocol) == 0)
			return true;
	if (told_count == PROTOCOLS)
		return true;
	snprintf(told[told_count++], NAME, "%s", protocol);
	return false;
}

/*
 * Prints each protocol once. It reads the attribute, which only sockfs has, only from links named as sockets: another
 * file may be on a server that does not answer.
 */
static void tell_socket(const char *pid, const char *fd)
{
	char path[64], protocol[NAME], name[16];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, fd);
	length = readlink(path, name, sizeof name);
	if (length < 8 || strncmp(name, "socket:[", 8) != 0)
		return;
	length = getxattr(path, "system.sockprotoname", protocol, sizeof protocol - 1);
	if (length <= 0)
		return;
	protocol[length] = 0;
	if (is_told(protocol))
		return;
	printf("socket %s %s %s\n", pid, fd, protocol);
}

static int tell_sockets(const char *pid)
{
	char path[64];
	DIR *directory;
	struct dirent *entry;

	told_count = 0;
	snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT || errno == ESRCH ? 0 : failed(path);
	while ((entry = readdir(directory)))
		if (is_number(entry->d_name))
			tell_socket(pid, entry->d_name);
	closedir(directory);
	return 0;
}

/* Each list has a heading line, then one line for each object. */
static int tell_sysv(const char *kind)
{
	char path[64];
	size_t lines = 0;
	int character;
	FILE *list;

	snprintf(path, sizeof path, "/proc/sysvipc/%s", kind);
	list = fopen(path, "re");
	if (!list)
		return errno == ENOENT ? 0 : failed(path);
	while ((character = getc(list)) != EOF)
		lines += character == '\n';
	fclose(list);
	if (lines > 1)
		printf("sysv %s %zu\n", kind, lines - 1);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "shm", "sem", "msg" };
	char path[64];
	int space, code = 0;

	for (int i = 1; i < argc; i++)
		if (!is_number(argv[i]) || strlen(argv[i]) > 10)
			argc = 0;
	if (argc < 2) {
		fputs("usage: inspect PID...\n", stderr);
		return 2;
	}
	for (int i = 1; i < argc && !code; i++)
		code = tell_sockets(argv[i]);
	snprintf(path, sizeof path, "/proc/%.20s/ns/ipc", argv[1]);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space >= 0) {
		/* The lists show the IPC namespace of the process that opens them. */
		if (setns(space, CLONE_NEWIPC))
			return failed(path);
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !code; i++)
			code = tell_sysv(kinds[i]);
	} else if (errno != ENOENT && errno != ESRCH) {
		return failed(path);
	}
	if (!code)
		puts("done");
	return fflush(stdout) == 0 ? code : failed("output");
}
