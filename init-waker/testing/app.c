/*
 * Stands for an app, and for processes beside it, in the tests of `hold` and `wait`.
 *
 *   app signals            print each signal received; SIGTERM: exit 42
 *   app stubborn           print each signal received, end on none
 *   app exit CODE          exit
 *   app kill SIGNAL        die of a signal, no core
 *   app orphan ARG...      run `app ARG...` as an orphan, print its pid, exit at once
 *   app parent ARG...      leave an orphan behind like `orphan`, then behave like `signals`
 *   app show ARG...        print the arguments, the session, the blocked signals and the open descriptors
 *   app order PATH TEXT [UID]    send TEXT and a newline to the unix socket at PATH, print the reply
 *   app namespace CMD...   run CMD as PID 1 of a new pid namespace, as a runtime does, and exit as it did
 */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int dispatch(int argc, char **argv);

/* Uses system calls, because the C library hides the signals that it reserves. */
static int signals(int code_on_term)
{
	uint64_t all = UINT64_MAX;
	struct signalfd_siginfo info;
	int fd;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
	fd = (int)syscall(SYS_signalfd4, -1, &all, sizeof all, 0);
	puts("ready");
	while (read(fd, &info, sizeof info) == sizeof info) {
		printf("signal %u\n", info.ssi_signo);
		if (info.ssi_signo == SIGTERM && code_on_term >= 0)
			return code_on_term;
	}
	return 95;
}

static int die(int number)
{
	struct rlimit none = { 0 };

	setrlimit(RLIMIT_CORE, &none);
	kill(getpid(), number);
	return 99;
}

static pid_t leave_orphan(int argc, char **argv)
{
	int pipes[2];
	pid_t orphan = -1, parent;

	if (pipe(pipes) != 0)
		return -1;
	parent = fork();
	if (parent == 0) {
		orphan = fork();
		if (orphan == 0) {
			close(pipes[0]);
			close(pipes[1]);
			exit(dispatch(argc, argv));
		}
		_exit(write(pipes[1], &orphan, sizeof orphan) == sizeof orphan ? 0 : 1);
	}
	if (read(pipes[0], &orphan, sizeof orphan) != sizeof orphan)
		orphan = -1;
	close(pipes[0]);
	close(pipes[1]);
	/* The process becomes an orphan only now. */
	waitpid(parent, NULL, 0);
	return orphan;
}

static int show(int argc, char **argv)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	DIR *descriptors;
	struct dirent *entry;

	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	printf("leader %d\n", getsid(0) == getpid());
	while (status && fgets(line, sizeof line, status))
		if (strncmp(line, "SigBlk:", 7) == 0 || strncmp(line, "SigIgn:", 7) == 0)
			fputs(line, stdout);
	if (status)
		fclose(status);
	descriptors = opendir("/proc/self/fd");
	while (descriptors && (entry = readdir(descriptors)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(descriptors))
			printf("descriptor %s\n", entry->d_name);
	return 0;
}

static int order(const char *path, const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char reply[256];
	ssize_t n;

	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return 1;
	dprintf(fd, "%s\n", text);
	while ((n = read(fd, reply, sizeof reply)) > 0)
		fwrite(reply, 1, (size_t)n, stdout);
	return 0;
}

static int run_as_pid_1(char **command)
{
	int status;
	pid_t child;

	if (unshare(CLONE_NEWPID) != 0)
		return 97;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, UINT_MAX, 0);
		execv(command[0], command);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child)
		return 96;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int dispatch(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "signals") == 0)
		return signals(42);
	if (strcmp(mode, "stubborn") == 0)
		return signals(-1);
	if (strcmp(mode, "exit") == 0 && argc == 3)
		return atoi(argv[2]);
	if (strcmp(mode, "kill") == 0 && argc == 3)
		return die(atoi(argv[2]));
	if (strcmp(mode, "orphan") == 0) {
		printf("orphan %d\n", leave_orphan(argc - 1, argv + 1));
		return 0;
	}
	if (strcmp(mode, "parent") == 0) {
		printf("orphan %d\n", leave_orphan(argc - 1, argv + 1));
		return signals(42);
	}
	if (strcmp(mode, "show") == 0)
		return show(argc - 2, argv + 2);
	if (strcmp(mode, "order") == 0 && argc == 5 && setuid((uid_t)atoi(argv[4])) != 0)
		return 94;
	if (strcmp(mode, "order") == 0 && (argc == 4 || argc == 5))
		return order(argv[2], argv[3]);
	if (strcmp(mode, "namespace") == 0 && argc > 2)
		return run_as_pid_1(argv + 2);
	return 98;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return dispatch(argc, argv);
}
