/*
 * asks HOW PORT: passes the gate as CRIU does, and then asks as CRIU does for all TCP sockets of IPv4. Prints whether
 * the answer came from `before` or from `now`, and whether a listener at that port is `there`.
 */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTEN = 10, CRIU_SEQUENCE = 24680 };

static int is_there(int fd, int port)
{
	static char answer[1 << 16];
	int found = 0;

	for (;;) {
		ssize_t length = recv(fd, answer, sizeof answer, 0);

		if (length <= 0)
			exit(3);
		for (const struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, length); at = NLMSG_NEXT(at, length)) {
			const struct inet_diag_msg *one = NLMSG_DATA(at);

			if (at->nlmsg_type == NLMSG_ERROR || at->nlmsg_seq != CRIU_SEQUENCE)
				exit(4);
			if (at->nlmsg_type == NLMSG_DONE)
				return found;
			found |= one->idiag_state == LISTEN && ntohs(one->id.idiag_sport) == port;
		}
	}
}

static void ask(int fd, int states, int port)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = { .nlmsg_len = sizeof message,
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_DUMP | NLM_F_REQUEST,
			    .nlmsg_seq = CRIU_SEQUENCE },
		.request = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = states },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec piece = { .iov_base = &message, .iov_len = sizeof message };
	struct msghdr whole = { .msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = &piece, .msg_iovlen = 1 };
	struct stat before, after;

	fstat(fd, &before);
	if (sendmsg(fd, &whole, 0) != sizeof message)
		exit(2);
	fstat(fd, &after);
	printf("%s, %s\n", before.st_ino == after.st_ino ? "now" : "before", is_there(fd, port) ? "there" : "not there");
	fflush(stdout);
}

int main(int count, char **arguments)
{
	const int states = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;
	const char *how = count == 3 ? arguments[1] : "";
	int port = count == 3 ? atoi(arguments[2]) : 0, fd;

	alarm(10);
	/* Gives the other thread time to ask. */
	usleep(100 * 1000);
	if (strcmp(how, "elsewhere") == 0 && unshare(CLONE_NEWNET) != 0)
		return 1;
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	if (strcmp(how, "child") == 0 && fork() != 0)
		return wait(NULL) < 0;
	if (strcmp(how, "for more") == 0)
		ask(fd, -1, port);
	else
		ask(fd, states, port);
	if (strcmp(how, "twice") == 0)
		ask(fd, states, port);
	return 0;
}
