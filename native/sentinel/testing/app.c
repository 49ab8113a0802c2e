/*
 * Long because it is one program, so that a test needs one path only.
 *
 * The program that the tests run below and around the sentinel.
 *
 *	app pause                    does nothing until it is killed
 *	app large MIB                prints `ready` once it has so much memory, and does nothing until it is killed
 *	app headless                 prints `ready`; at SIGUSR1 its first thread ends, and another one prints `headless`
 *	app serve WORD PORT          answers `WORD PEER` to each TCP connection and each UDP datagram; prints `ready`
 *	app ask tcp|udp ADDRESS PORT prints the answer, or `error N`
 *	app talk ADDRESS PORT        sends one UDP datagram for each line of standard input; prints each answer
 *	app tree [MARK]              starts a child, a grandchild, an orphan, and an orphan with a session of its own;
 *	                             prints pids seen from the innermost namespace, then pauses; its own process takes the
 *	                             name `whole` when both orphans have lost their parents
 *	app forks COUNT              keeps COUNT children, replacing each as it dies; never ends
 *	app crowd COUNT FILE         writes its pid into the file, a cgroup.procs, and starts COUNT children, which pause and
 *	                             end with it; prints `ready`
 *	app kill SIGNAL              ends by that signal
 *	app trace PID [runs]         stops a process by tracing it, or lets it run, until it is killed; prints `ready`
 *	app doom PID                 kills a process and prints the time, in nanoseconds since 1970
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 2 };

static void __attribute__((noreturn)) pause_for_ever(void)
{
	for (;;)
		pause();
}

static struct sockaddr_in6 address_of(const char *ip, const char *port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port)) };
	char text[64];

	snprintf(text, sizeof text, "%s%s", strchr(ip, ':') ? "" : "::ffff:", ip);
	inet_pton(AF_INET6, text, &address.sin6_addr);
	return address;
}

/* An address of IPv4 has its usual form. */
static const char *name_of(const struct sockaddr_in6 *peer)
{
	static char text[INET6_ADDRSTRLEN];
	const char *name = inet_ntop(AF_INET6, &peer->sin6_addr, text, sizeof text);

	return name && IN6_IS_ADDR_V4MAPPED(&peer->sin6_addr) ? name + strlen("::ffff:") : name;
}

/* Listens for both families. */
static int opened(int type, const char *port)
{
	struct sockaddr_in6 address = address_of("::", port);
	int yes = 1, fd = socket(AF_INET6, type, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || (type == SOCK_STREAM && listen(fd, 128) != 0)) {
		perror("bind");
		exit(1);
	}
	return fd;
}

static int serve(const char *word, const char *port)
{
	struct pollfd polled[] = {
		{ .fd = opened(SOCK_STREAM, port), .events = POLLIN },
		{ .fd = opened(SOCK_DGRAM, port), .events = POLLIN },
	};

	puts("ready");
	fflush(stdout);
	while (poll(polled, 2, -1) > 0) {
		struct sockaddr_in6 peer;
		socklen_t length = sizeof peer;
		char text[256];

		if (polled[0].revents) {
			int fd = accept(polled[0].fd, (struct sockaddr *)&peer, &length);

			snprintf(text, sizeof text, "%s %s\n", word, name_of(&peer));
			send(fd, text, strlen(text), MSG_NOSIGNAL);
			close(fd);
		}
		if (polled[1].revents) {
			recvfrom(polled[1].fd, text, sizeof text, 0, (struct sockaddr *)&peer, &length);
			snprintf(text, sizeof text, "%s %s\n", word, name_of(&peer));
			sendto(polled[1].fd, text, strlen(text), 0, (struct sockaddr *)&peer, length);
		}
	}
	return 1;
}

static int connected(int type, const char *ip, const char *port)
{
	struct sockaddr_in6 address = address_of(ip, port);
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_INET6, type, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return -1;
	return fd;
}

static void print_answer(int fd, int type)
{
	char text[256];
	ssize_t n = -1;

	if (fd >= 0 && (type == SOCK_STREAM || send(fd, "?", 1, 0) == 1))
		n = recv(fd, text, sizeof text - 1, 0);
	if (n < 0)
		printf("error %d\n", errno);
	else
		printf("%.*s", (int)n, text);
	fflush(stdout);
}

static int talk(const char *ip, const char *port)
{
	int fd = connected(SOCK_DGRAM, ip, port);
	char line[16];

	while (fgets(line, sizeof line, stdin))
		print_answer(fd, SOCK_DGRAM);
	return 0;
}

static pid_t child_that(void (*act)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		act();
		pause_for_ever();
	}
	return pid;
}

static void say_pid(void)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
}

static void grandchild(void)
{
	say_pid();
	child_that(say_pid);
}

static void __attribute__((noreturn)) orphan(void)
{
	child_that(say_pid);
	_exit(0);
}

static void leave(void)
{
	setsid();
	say_pid();
}

static void __attribute__((noreturn)) leaving_orphan(void)
{
	child_that(leave);
	_exit(0);
}

static int tree(void)
{
	say_pid();
	child_that(grandchild);
	waitpid(child_that(orphan), NULL, 0);
	waitpid(child_that(leaving_orphan), NULL, 0);
	prctl(PR_SET_NAME, "whole");
	pause_for_ever();
}

static void nothing(void)
{
}

static int forks(int count)
{
	for (int i = 0; i < count; i++)
		child_that(nothing);
	puts("ready");
	fflush(stdout);
	for (;;) {
		pid_t pid = child_that(nothing);

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int crowd(int count, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file) != 0) {
		perror(path);
		return 1;
	}
	for (int i = 0; i < count; i++)
		if (child_that(end_with_parent) < 0) {
			perror("fork");
			return 1;
		}
	puts("ready");
	fflush(stdout);
	pause_for_ever();
}

static int doom(pid_t pid)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	kill(pid, SIGKILL);
	printf("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	return 0;
}

static int trace(pid_t pid, int runs)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
	    (!runs && (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, NULL, __WALL) != pid))) {
		perror("ptrace");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	pause_for_ever();
}

static int large(size_t mib)
{
	size_t bytes = mib << 20;
	volatile char *memory = malloc(bytes);

	for (size_t i = 0; memory && i < bytes; i += 4096)
		memory[i] = 1;
	puts(memory ? "ready" : "no memory");
	fflush(stdout);
	pause_for_ever();
}

static void *second_thread(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	puts("headless");
	fflush(stdout);
	pause_for_ever();
}

static int headless(void)
{
	/* Static, because the stack of this thread ends with it. */
	static pthread_t self;
	pthread_t other;
	sigset_t set;
	int signal;

	self = pthread_self();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&other, NULL, second_thread, &self) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	sigwait(&set, &signal);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "pause") == 0)
		pause_for_ever();
	if (strcmp(name, "large") == 0 && argc == 3)
		return large((size_t)atoi(argv[2]));
	if (strcmp(name, "headless") == 0)
		return headless();
	if (strcmp(name, "serve") == 0 && argc == 4)
		return serve(argv[2], argv[3]);
	if (strcmp(name, "ask") == 0 && argc == 5) {
		int type = strcmp(argv[2], "tcp") == 0 ? SOCK_STREAM : SOCK_DGRAM;

		print_answer(connected(type, argv[3], argv[4]), type);
		return 0;
	}
	if (strcmp(name, "talk") == 0 && argc == 4)
		return talk(argv[2], argv[3]);
	if (strcmp(name, "tree") == 0 && argc <= 3)
		return tree();
	if (strcmp(name, "forks") == 0 && argc == 3)
		return forks(atoi(argv[2]));
	if (strcmp(name, "crowd") == 0 && argc == 4)
		return crowd(atoi(argv[2]), argv[3]);
	if (strcmp(name, "trace") == 0 && (argc == 3 || argc == 4))
		return trace(atoi(argv[2]), argc == 4);
	if (strcmp(name, "doom") == 0 && argc == 3)
		return doom(atoi(argv[2]));
	if (strcmp(name, "kill") == 0 && argc == 3) {
		raise(atoi(argv[2]));
		return 0;
	}
	return 2;
}
