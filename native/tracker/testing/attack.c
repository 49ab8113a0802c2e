/*
 * A process that attacks the tracker that holds it. Prints what came of it, as pairs of a name and a figure.
 *
 *   attack filter    calls what its filter of system calls forbids
 *   attack signals   gets SIGCONT all the time
 *   attack stop      gets SIGSTOP while it makes the userfaultfd
 *   attack socket    puts a socket that lingers for 8 s in the place of the userfaultfd
 *   attack vdso      has a loop instead of a system call in its vDSO
 *   attack reuse     has the number of a process that has ended
 *
 * Long because it has all attacks, which share how they start and what is measured.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "process_stat.h"
#include "tracker.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Shared with the attackers. */
struct shared {
	volatile long ready, forbidden, calls;
};

static struct shared *shared;

static pid_t start(void (*attacker)(void))
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		attacker();
		_exit(1);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void __attribute__((noreturn)) wait_forever(void)
{
	for (;;)
		pause();
}

static void idle(void)
{
	shared->ready = 1;
	wait_forever();
}

static struct tracked entry_of(pid_t pid)
{
	struct tracked process = { .pid = pid, .uffd = -1, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
	struct process_stat stat;

	if (process_stat(pid, &stat))
		process.start = stat.start;
	while (!shared->ready)
		usleep(100);
	return process;
}

static const char *once(struct tracked *process)
{
	int64_t held_ns;

	return prepare(process, INT64_MAX, &held_ns);
}

static int userfaultfds(pid_t pid)
{
	char path[32], target[64];
	int count = 0;
	DIR *directory;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	for (struct dirent *file; directory && (file = readdir(directory));) {
		const ssize_t length = readlinkat(dirfd(directory), file->d_name, target, sizeof target - 1);

		target[length < 0 ? 0 : length] = 0;
		count += strstr(target, "userfaultfd") != NULL;
	}
	closedir(directory);
	return count;
}

static void call_forbidden(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	for (shared->ready = 1;; shared->calls++)
		shared->forbidden += syscall(SYS_unshare, 0L) == 0;
}

static void filter(void)
{
	const pid_t pid = start(call_forbidden);
	struct tracked process = entry_of(pid);
	int good = 0;

	for (int i = 0; i < 200; i++) {
		good += once(&process) == NULL;
		/* Half of them make a userfaultfd. */
		if (i % 2) {
			close(process.uffd);
			process.uffd = -1;
		}
		usleep(500);
	}
	printf("most good %d forbidden %ld\n", good > 190, shared->forbidden);
	end(pid);
}

static pid_t victim;

static void send_all_the_time(void)
{
	for (;;) {
		kill(victim, SIGCONT);
		usleep(50 + (unsigned)rand() % 200);
	}
}

static void signals(void)
{
	struct tracked process = entry_of(victim = start(idle));
	const pid_t sender = start(send_all_the_time);
	int good = 0;

	for (int i = 0; i < 300; i++) {
		good += once(&process) == NULL;
		close(process.uffd);
		process.uffd = -1;
	}
	end(sender);
	/* On a busy machine a call may take longer than its second. */
	printf("most good %d left %d refused %d\n", good > 290, userfaultfds(victim), process.refused != NULL);
	end(victim);
}

static void *send_stop(void *argument)
{
	usleep((unsigned)rand() % 1500);
	kill(victim, SIGSTOP);
	return argument;
}

/* Each SIGSTOP must stop it, whenever it comes. */
static void stop(void)
{
	struct tracked process = entry_of(victim = start(idle));
	int good = 0, stopped = 0;

	for (int i = 0; i < 200; i++) {
		struct process_stat stat = { 0 };
		pthread_t sender;

		pthread_create(&sender, NULL, send_stop, NULL);
		good += once(&process) == NULL;
		pthread_join(sender, NULL);
		close(process.uffd);
		process.uffd = -1;
		for (int tries = 0; tries < 1000 && stat.state != 'T'; tries++) {
			usleep(1000);
			process_stat(victim, &stat);
		}
		stopped += stat.state == 'T';
		kill(victim, SIGCONT);
	}
	/* A thread that waits to receive it is not used. */
	printf("most good %d stopped %d left %d refused %d\n", good > 100, stopped, userfaultfds(victim), process.refused != NULL);
	end(victim);
}

static int listener;

static void put_socket(void)
{
	const int own = socket(AF_INET, SOCK_STREAM, 0);
	const struct linger linger = { 1, 8 };
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	static char bytes[65536];
	int next;

	getsockname(listener, (struct sockaddr *)&address, &size);
	connect(own, (struct sockaddr *)&address, size);
	setsockopt(own, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	fcntl(own, F_SETFL, O_NONBLOCK);
	/* The other end never reads. */
	while (write(own, bytes, sizeof bytes) > 0)
		;
	next = dup(0);
	close(next);
	if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) != 0)
		wait_forever();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (shared->ready = 1;;)
		if (fcntl(next, F_GETFD) >= 0) {
			dup2(own, next);
			close(own);
			wait_forever();
		}
}

static void put_socket_often(void)
{
	int forged = 0, kept = 0;
	int64_t longest = 0;

	for (int i = 0; i < 12; i++) {
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		struct tracked process;
		const char *why;
		int64_t began;
		int peer;

		listener = socket(AF_INET, SOCK_STREAM, 0);
		bind(listener, (struct sockaddr *)&address, sizeof address);
		listen(listener, 1);
		shared->ready = 0;
		victim = start(put_socket);
		peer = accept(listener, NULL, NULL);
		process = entry_of(victim);
		began = monotonic_ns();
		why = once(&process);
		if (monotonic_ns() - began > longest)
			longest = monotonic_ns() - began;
		forged += why && strcmp(why, "forged") == 0;
		kept += process.uffd >= 0;
		end(victim);
		close(peer);
		close(listener);
	}
	/* It is bounded by the time for a call: the process itself closes the socket, too. */
	printf("within 6 s %d kept or forged %d\n", longest < 6000 * (int64_t)NS_PER_MS, forged > 0 || kept > 0);
}

static void loop_in_vdso(void)
{
	char line[256];
	unsigned long from = 0, to = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned char *code;

	while (fgets(line, sizeof line, maps) && !(strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &from, &to) == 2))
		;
	code = (unsigned char *)from;
	mprotect(code, to - from, PROT_READ | PROT_WRITE | PROT_EXEC);
	for (unsigned long i = 2; i + 1 < to - from; i++)
		if (code[i] == 0x0f && code[i + 1] == 0x05) {
			/* Now a system call, now a jump to itself. */
			shared->ready = 1;
			for (;;) {
				code[i] = 0xeb;
				code[i + 1] = 0xfe;
				code[i] = 0x0f;
				code[i + 1] = 0x05;
			}
		}
}

static void vdso(void)
{
	const pid_t pid = start(loop_in_vdso);
	struct tracked process = entry_of(pid);
	const int64_t began = monotonic_ns();
	int ended = 0;

	for (int i = 0; i < 20 && !process.refused; i++) {
		once(&process);
		if (process.uffd >= 0)
			close(process.uffd);
		process.uffd = -1;
		ended++;
	}
	printf("ended %d within 10 s %d\n", ended > 0, monotonic_ns() - began < 10000 * (int64_t)NS_PER_MS);
	end(pid);
}

static void be_traced(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	idle();
}

/* A process that is traced already cannot be held. */
static void reuse(void)
{
	const pid_t pid = start(be_traced);
	struct tracked process = entry_of(pid);
	const char *same = once(&process), *other;
	int64_t held_ns;

	process.start++;
	other = once(&process);
	process.start--;
	printf("same %s other %s later %s\n", same, other, prepare(&process, monotonic_ns() - 1, &held_ns));
	end(pid);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} attacks[] = {
		{ "filter", filter }, { "signals", signals }, { "stop", stop }, { "socket", put_socket_often },
		{ "vdso", vdso }, { "reuse", reuse },
	};

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; count == 2 && i < sizeof attacks / sizeof *attacks; i++)
		if (strcmp(attacks[i].name, arguments[1]) == 0) {
			attacks[i].run();
			return 0;
		}
	return 2;
}
