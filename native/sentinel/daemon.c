#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

int instance_lock(const char *path)
{
	char lock[4096];
	int fd, error;

	if ((size_t)snprintf(lock, sizeof lock, "%s.lock", path) >= sizeof lock) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Waits for a byte, or until the other end is closed. */
static void __attribute__((noreturn)) await(int fd)
{
	unsigned char code = 1;
	ssize_t n;

	do
		n = read(fd, &code, 1);
	while (n < 0 && errno == EINTR);
	_exit(code);
}

bool daemon_begin(int *ready)
{
	int pipe[2];
	pid_t child;

	if (pipe2(pipe, O_CLOEXEC) != 0)
		return false;
	child = fork();
	if (child < 0)
		return false;
	if (child > 0) {
		close(pipe[1]);
		waitpid(child, NULL, 0);
		await(pipe[0]);
	}
	close(pipe[0]);
	setsid();
	child = fork();
	if (child < 0)
		return false;
	/* The session leader exits: only a leader could acquire a terminal. */
	if (child > 0)
		_exit(0);
	if (chdir("/") != 0)
		return false;
	*ready = pipe[1];
	return true;
}

void daemon_ready(int ready, bool keeps_errors)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		if (!keeps_errors)
			dup2(null, 2);
		close(null);
	}
	if (write(ready, "\0", 1) == 1)
		close(ready);
}
