/*
 *   names PROGRAM ARGUMENT...
 *
 * Runs a program and writes to descriptor 209 every absolute path that it or its descendants pass to the kernel: a line
 * each, with the name of the call. strace would block a program that traces others.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LOG = 209, PATHS = 4096 };

/* For each call, the index of the argument that is a path. */
static const struct {
	const char *name;
	int number, path;
} calls[] = {
	{ "openat", SYS_openat, 1 },	     { "openat2", 437, 1 },
	{ "statx", SYS_statx, 1 },	     { "newfstatat", SYS_newfstatat, 1 },
	{ "faccessat", SYS_faccessat, 1 },   { "faccessat2", 439, 1 },
	{ "readlinkat", SYS_readlinkat, 1 }, { "execve", SYS_execve, 0 },
	{ "execveat", SYS_execveat, 1 },     { "statfs", SYS_statfs, 0 },
	{ "unlinkat", SYS_unlinkat, 1 },     { "mkdirat", SYS_mkdirat, 1 },
#ifdef SYS_open
	{ "open", SYS_open, 0 },	     { "stat", SYS_stat, 0 },
	{ "lstat", SYS_lstat, 0 },	     { "access", SYS_access, 0 },
	{ "readlink", SYS_readlink, 0 },     { "unlink", SYS_unlink, 0 },
	{ "mkdir", SYS_mkdir, 0 },	     { "chdir", SYS_chdir, 0 },
#endif
};

enum { CALLS = sizeof calls / sizeof *calls };

static void write_down(const struct seccomp_notif *asked)
{
	char path[PATHS] = "";
	struct iovec to = { path, sizeof path - 1 }, from = { 0 };

	for (int i = 0; i < CALLS; i++) {
		if (calls[i].number != asked->data.nr)
			continue;
		from.iov_base = (void *)(unsigned long)asked->data.args[calls[i].path];
		/* Up to the end of its page, because the next one may be unmapped. */
		from.iov_len = 4096 - ((unsigned long)from.iov_base & 4095);
		if (process_vm_readv((int)asked->pid, &to, 1, &from, 1, 0) > 0 && path[0] == '/')
			dprintf(LOG, "%s %s\n", calls[i].name, path);
	}
}

static int listen_to(int listener)
{
	static struct seccomp_notif asked;
	static struct seccomp_notif_resp answer;

	for (;;) {
		struct pollfd end = { .fd = listener, .events = POLLIN };

		if (poll(&end, 1, -1) < 0 && errno == EINTR)
			continue;
		if (!(end.revents & POLLIN))
			return 0;
		memset(&asked, 0, sizeof asked);
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
			continue;
		write_down(&asked);
		answer = (struct seccomp_notif_resp){ .id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static int install(void)
{
	struct sock_filter code[CALLS + 3];
	struct sock_fprog program = { .len = CALLS + 3, .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned char i = 0; i < CALLS; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, CALLS - i, 0);
	code[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int main(int count, char **arguments)
{
	union control control = { 0 };
	char byte = 0;
	struct iovec one = { &byte, 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	int ends[2], listener;

	if (count < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 125;
	if (fork() == 0) {
		/* The caller must not wait for this process. */
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		close(ends[0]);
		if (recvmsg(ends[1], &message, 0) != 1)
			_exit(1);
		memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
		close(ends[1]);
		_exit(listen_to(listener));
	}
	close(ends[1]);
	listener = install();
	if (listener < 0) {
		perror("names");
		return 125;
	}
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), &listener, sizeof listener);
	if (sendmsg(ends[0], &message, 0) != 1)
		return 125;
	close(listener);
	close(ends[0]);
	close(LOG);
	execv(arguments[1], arguments + 1);
	return 127;
}
