/*
 * options: passes the gate as CRIU does, and then examines sockets as CRIU does. Prints one line each: its kind, its
 * TCP_NODELAY, SO_KEEPALIVE and SO_RCVBUF, all of which have been set, and whether fdinfo is equal to the kernel's.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int proc;

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof value;

	return getsockopt(fd, level, name, &value, &length) == 0 && length == sizeof value ? value : -1;
}

/* Returns a field of fdinfo; the number follows `name`. */
static unsigned long long field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 0) : ~0ULL;
}

static void read_about(int fd, char *text)
{
	char path[32];
	ssize_t length, have = 0;
	int file;

	snprintf(path, sizeof path, "fdinfo/%d", fd);
	file = openat(proc, path, O_RDONLY);
	while ((length = read(file, text + have, 1023 - have)) > 0)
		have += length;
	text[have] = 0;
	if (close(file) != 0)
		exit(3);
}

static void ask(const char *what, int fd)
{
	struct stat status;
	struct statfs file_system;
	char told[1024], real[1024];

	read_about(fd, real);
	if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode) || fstatfs(fd, &file_system) != 0)
		exit(4);
	read_about(fd, told);
	option(fd, SOL_SOCKET, SO_DOMAIN);
	option(fd, SOL_SOCKET, SO_PROTOCOL);
	option(fd, SOL_SOCKET, SO_TYPE);
	printf("%s: %d %d %d, %s%s\n", what, option(fd, IPPROTO_TCP, TCP_NODELAY), option(fd, SOL_SOCKET, SO_KEEPALIVE),
	       option(fd, SOL_SOCKET, SO_RCVBUF),
	       (long)file_system.f_type == 0x534F434B && field(told, "pos:") == field(real, "pos:") &&
			       field(told, "mnt_id:") == field(real, "mnt_id:") &&
			       (field(told, "flags:") & ~(unsigned long long)O_CLOEXEC) ==
				       (field(real, "flags:") & ~(unsigned long long)O_CLOEXEC)
		       ? "the same"
		       : "something else",
	       strcmp(told, real) == 0 ? ", asked" : "");
}

static int open_socket(int type, int family)
{
	int fd = socket(family, type | SOCK_NONBLOCK, 0), one = 1, bytes = 10000;

	if (family == AF_INET && type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	return fd;
}

int main(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof here;
	int listener = open_socket(SOCK_STREAM, AF_INET), client = open_socket(SOCK_STREAM, AF_INET), accepted;

	if (bind(listener, (void *)&here, sizeof here) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (void *)&here, &length) != 0)
		return 1;
	connect(client, (void *)&here, sizeof here);
	while ((accepted = accept(listener, NULL, NULL)) < 0)
		usleep(1000);
	proc = open("/proc/self", O_RDONLY | O_DIRECTORY);
	alarm(10);
	ask("listener", listener);
	ask("client", client);
	ask("accepted", accepted);
	ask("unconnected", open_socket(SOCK_STREAM, AF_INET));
	ask("datagram", open_socket(SOCK_DGRAM, AF_INET));
	ask("local", open_socket(SOCK_STREAM, AF_UNIX));
	/* Another socket with the same number. */
	close(client);
	dup2(listener, client);
	ask("other", client);
	return 0;
}
