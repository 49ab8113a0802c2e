/*
 * A process that keeps running while others are dumped or restored.
 *
 *   neighbour connect COUNT   connects COUNT times to each abstract SEQPACKET socket; prints what it receives
 *   neighbour send            sends a descriptor to each abstract datagram socket
 *   neighbour look            prints which logs the processes that it sees have open
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 512, DATAGRAMS = 2, PACKETS = 5 };

static struct pollfd held[MOST];

/* Columns of /proc/net/unix: number, references, protocol, flags, type, state, inode, name. */
static void each_name(int type, void (*meet)(const struct sockaddr_un *, socklen_t))
{
	static char text[1 << 20];
	int file = open("/proc/self/net/unix", O_RDONLY);
	ssize_t length, have = 0;

	while (file >= 0 && (length = read(file, text + have, sizeof text - 1 - (size_t)have)) > 0)
		have += length;
	close(file);
	text[have] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		char *name = strchr(line, '@');
		unsigned flags, is;

		if (!name || sscanf(line, "%*s %*s %*s %x %x", &flags, &is) != 2 || (int)is != type || (type == PACKETS && !flags))
			continue;
		strncpy(address.sun_path + 1, name + 1, sizeof address.sun_path - 2);
		meet(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)));
	}
}

static int wanted;

static void connect_to(const struct sockaddr_un *address, socklen_t length)
{
	for (int i = 0; i < wanted; i++) {
		int fd;

		if (held[i].fd >= 0)
			continue;
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (connect(fd, (const void *)address, length) != 0) {
			close(fd);
			return;
		}
		held[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
}

/* Receives from all connections. */
static void hear(void)
{
	if (poll(held, (nfds_t)wanted, 0) <= 0)
		return;
	for (int i = 0; i < wanted; i++) {
		char bytes[64], space[CMSG_SPACE(sizeof(int))], path[32], name[256] = "nothing";
		struct iovec data = { bytes, sizeof bytes };
		struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space };
		const struct cmsghdr *more;
		ssize_t length;
		int fd;

		if (held[i].fd < 0 || !held[i].revents)
			continue;
		length = recvmsg(held[i].fd, &message, 0);
		if (length <= 0) {
			close(held[i].fd);
			held[i].fd = -1;
			continue;
		}
		more = CMSG_FIRSTHDR(&message);
		if (more) {
			memcpy(&fd, CMSG_DATA(more), sizeof fd);
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			name[readlink(path, name, sizeof name - 1)] = 0;
			close(fd);
		}
		printf("heard %zd bytes with %s\n", length, name);
	}
}

static void send_to(const struct sockaddr_un *address, socklen_t length)
{
	static int null = -1, sender = -1;
	static long word = 4096;
	char space[CMSG_SPACE(sizeof null)] = { 0 };
	struct iovec data = { &word, sizeof word };
	struct msghdr message = { .msg_name = (void *)address, .msg_namelen = length, .msg_iov = &data, .msg_iovlen = 1,
				  .msg_control = space, .msg_controllen = sizeof space };
	struct cmsghdr *more = CMSG_FIRSTHDR(&message);

	if (null < 0) {
		null = open("/dev/null", O_RDONLY);
		sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	}
	more->cmsg_level = SOL_SOCKET;
	more->cmsg_type = SCM_RIGHTS;
	more->cmsg_len = CMSG_LEN(sizeof null);
	memcpy(CMSG_DATA(more), &null, sizeof null);
	for (int i = 0; i < 16; i++)
		if (sendmsg(sender, &message, 0) > 0 && i == 0)
			printf("sent to %s\n", address->sun_path + 1);
}

static void look(void)
{
	DIR *all = opendir("/proc");
	const struct dirent *one, *file;

	while ((one = readdir(all))) {
		char path[600], name[256];
		DIR *files;

		if (*one->d_name < '1' || *one->d_name > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/fd", one->d_name);
		files = opendir(path);
		while (files && (file = readdir(files))) {
			ssize_t length;

			snprintf(path, sizeof path, "/proc/%s/fd/%s", one->d_name, file->d_name);
			length = readlink(path, name, sizeof name - 1);
			name[length < 0 ? 0 : length] = 0;
			if (strstr(name, ".log"))
				printf("a log: %s\n", name);
		}
		if (files)
			closedir(files);
	}
	closedir(all);
}

int main(int count, char **arguments)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("awake");
	if (count < 2)
		return 2;
	wanted = count == 3 ? atoi(arguments[2]) : 0;
	for (int i = 0; i < MOST; i++)
		held[i].fd = -1;
	for (;;)
		switch (*arguments[1]) {
		case 'c':
			each_name(PACKETS, connect_to);
			hear();
			break;
		case 's':
			each_name(DATAGRAMS, send_to);
			break;
		default:
			look();
		}
}
