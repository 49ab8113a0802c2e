/*
 * A container without a runtime. The agent's canary and the tests dump and restore it before any pod runs on the node.
 *
 *   test-container run --dir DIR --pid-file FILE [option...] -- COMMAND [ARG...]
 *     runs COMMAND as PID 1 of new namespaces (mount, pid, network, ipc, uts). Its root is an overlay of DIR/lower,
 *     DIR/upper and DIR/work at DIR/root, with /proc, /dev and /dev/shm of its own. FILE gets its pid in this program's
 *     pid namespace before COMMAND runs. Exits with COMMAND's status.
 *       --cgroup PATH       below this program's own cgroups, in every hierarchy that has it; removed at the end
 *       --volume SRC:DST    mounts SRC at DST
 *       --user UID          without any capability; by default with those that runtimes give
 *       --capability N      adds this capability
 *       --parent-death N    sends signal N to COMMAND when this program ends
 *   test-container count PORT         serves three numbers, kept in a process, a thread and a child. Each request increments them
 *                           and adds a line to /tmp/log, which stays open
 *   test-container fill PORT MIB      fills that much memory, and reports its errors at PORT + 1; see fill.h
 *   test-container storm PORT         changes its memory in all ways, and pauses; see storm.h
 *   test-container ask PORT           asks such a server at 127.0.0.1 and prints the answer
 *
 * Long because a container needs each kind of namespace, mount, device and cgroup in one order.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fill.h"
#include "storm.h"

enum { PATHS = 4096, VOLUMES = 8, HIERARCHIES = 16, SERVERS = 3 };

static const char *directory, *pid_file, *group;
static const char *volumes[VOLUMES];
static int volume_count;
static long user = -1, parent_death, more = -1;
static pid_t child;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "test-container: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static _Noreturn void usage(void)
{
	fprintf(stderr, "usage: test-container run --dir DIR --pid-file FILE [--cgroup PATH] [--volume SRC:DST] [--user UID] "
			"[--capability N] [--parent-death N] -- "
			"COMMAND...\n       test-container count PORT\n       test-container fill PORT MIB\n       test-container ask PORT\n");
	_exit(2);
}

static void make_directories(const char *path)
{
	char copy[PATHS];

	snprintf(copy, sizeof copy, "%s", path);
	for (char *at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(copy, 0755);
		*at = '/';
	}
	if (mkdir(copy, 0755) && errno != EEXIST)
		fail(copy);
}

static void mount_or_fail(const char *source, const char *target, const char *type, unsigned long flags, const char *data)
{
	if (mount(source, target, type, flags, data))
		fail(target);
}

static void write_or_fail(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail(path);
	close(fd);
}

/* Writes the directories of `group` below this process's own cgroup in each hierarchy; returns their number. */
static int group_directories(char found[HIERARCHIES][PATHS])
{
	FILE *file = fopen("/proc/self/cgroup", "r");
	char line[PATHS];
	int count = 0;

	while (file && group && count < HIERARCHIES && fgets(line, sizeof line, file)) {
		char *controllers = strchr(line, ':'), *own;
		const char *hierarchy;

		line[strcspn(line, "\n")] = '\0';
		if (!controllers || !(own = strchr(++controllers, ':')))
			continue;
		*own++ = '\0';
		hierarchy = strncmp(controllers, "name=", 5) ? controllers : controllers + 5;
		/*
		 * A new cpuset has no CPUs, so no process can join it. Where v1 and v2 are mixed, v2 is mounted at its
		 * own path.
		 */
		if (!strcmp(hierarchy, "cpuset"))
			continue;
		snprintf(found[count], PATHS, "/sys/fs/cgroup/%s%s/%s", hierarchy, own, group);
		if (!*hierarchy && access("/sys/fs/cgroup/cgroup.procs", F_OK))
			snprintf(found[count], PATHS, "/sys/fs/cgroup/unified%s/%s", own, group);
		count++;
	}
	if (file)
		fclose(file);
	return count;
}

static void join_groups(char groups[HIERARCHIES][PATHS], int count)
{
	for (int i = 0; i < count; i++) {
		char *procs;

		make_directories(groups[i]);
		if (asprintf(&procs, "%s/cgroup.procs", groups[i]) < 0)
			fail("memory");
		write_or_fail(procs, "0");
		free(procs);
	}
}

/* A reaped process may count in its cgroup for a few moments more. Cgroups that still have child cgroups stay. */
static bool remove_group(const char *path, bool own)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int tries = 0; tries < (own ? 500 : 1); tries++) {
		if (rmdir(path) == 0)
			return true;
		if (errno != EBUSY)
			return false;
		nanosleep(&moment, NULL);
	}
	return false;
}

/* Removes the cgroup and those parents that were made for it; a cgroup still in use stays. */
static void remove_groups(char groups[HIERARCHIES][PATHS], int count)
{
	int depth = 1;

	for (const char *at = group; at && *at; at++)
		depth += *at == '/';
	for (int i = 0; i < count; i++)
		for (int level = 0; level < depth && remove_group(groups[i], level == 0); level++)
			*strrchr(groups[i], '/') = '\0';
}

static void device(const char *path, unsigned minor)
{
	if (mknod(path, S_IFCHR | 0666, makedev(1, minor)) || chmod(path, 0666))
		fail(path);
}

static void enter_root(void)
{
	char options[4 * PATHS], root[PATHS];

	mount_or_fail("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (int i = 0; i < 4; i++) {
		snprintf(root, sizeof root, "%s/%s", directory, (const char *[]){ "lower", "upper", "work", "root" }[i]);
		make_directories(root);
	}
	snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", directory, directory,
		 directory);
	mount_or_fail("overlay", root, "overlay", 0, options);
	for (int i = 0; i < volume_count; i++) {
		const char *colon = strchr(volumes[i], ':');
		char source[PATHS], target[2 * PATHS];

		if (!colon)
			usage();
		snprintf(source, sizeof source, "%.*s", (int)(colon - volumes[i]), volumes[i]);
		snprintf(target, sizeof target, "%s%s", root, colon + 1);
		make_directories(source);
		make_directories(target);
		mount_or_fail(source, target, NULL, MS_BIND, NULL);
	}
	if (chdir(root))
		fail(root);
	for (int i = 0; i < 5; i++)
		if (mkdir((const char *[]){ "proc", "dev", "tmp", "run", "put_old" }[i], 01777) && errno != EEXIST)
			fail("mkdir");
	if (chmod("tmp", 01777))
		fail("tmp");
	mount_or_fail("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_or_fail("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=64k");
	umask(0);
	device("dev/null", 3);
	device("dev/zero", 5);
	device("dev/urandom", 9);
	if (symlink("/proc/self/fd", "dev/fd") || mkdir("dev/shm", 01777))
		fail("dev");
	mount_or_fail("shm", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=16m");
	umask(022);
	if (syscall(SYS_pivot_root, ".", "put_old") || chdir("/") || umount2("/put_old", MNT_DETACH))
		fail("pivot_root");
	rmdir("/put_old");
}

static void loopback_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fail("lo");
	close(fd);
}

/* Reduces the bounding set: the first program that runs gets no other capabilities. */
static void bound(unsigned long long kept)
{
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (!(kept >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
			fail("capabilities");
}

/* Becomes a user with no capability in any set, as in the strictest pods. */
static void become_user(void)
{
	bound(0);
	if (setgroups(0, NULL) || setresgid((gid_t)user, (gid_t)user, (gid_t)user) ||
	    setresuid((uid_t)user, (uid_t)user, (uid_t)user) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("user");
}

/* Sets the descriptors as a runtime does: the container's /dev/null, and two pipes that an outside process reads. */
static void take_stdio(int out, int err)
{
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		fail("stdio");
	if (syscall(SYS_close_range, 3U, ~0U, 0U))
		fail("close_range");
}

/* Copies the container's output until all of its processes have closed both pipes. */
static void pass_on(int out, int err)
{
	struct pollfd pipes[] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	char bytes[4096];

	while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
		if (poll(pipes, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			ssize_t length = pipes[i].revents ? read(pipes[i].fd, bytes, sizeof bytes) : -1;

			if (length == 0)
				pipes[i].fd = -1;
			/* Our reader may be gone; the container keeps running. */
			if (length > 0 && write(i + 1, bytes, (size_t)length) < 0)
				continue;
		}
	}
}

static void kill_child(int signal)
{
	(void)signal;
	kill(child, SIGKILL);
}

/*
 * CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD,
 * AUDIT_WRITE, SETFCAP
 */
static const unsigned long long by_default = 0xa80425fb;

static int run(char **command)
{
	static char groups[HIERARCHIES][PATHS];
	int group_count = group_directories(groups), settled[2], ready[2], out[2], err[2], status;
	char text[32], byte;

	signal(SIGPIPE, SIG_IGN);
	/* Overrides the caller's umask: other users must be able to read the root. */
	umask(022);
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		fail("pipe");
	if (unshare(CLONE_NEWPID))
		fail("unshare");
	if (pipe2(settled, O_CLOEXEC) || pipe2(ready, O_CLOEXEC) || (child = fork()) < 0)
		fail("fork");
	if (child == 0) {
		/* No other program knows of the container, so it must not outlive this one. */
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		join_groups(groups, group_count);
		setsid();
		if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
			fail("unshare");
		enter_root();
		loopback_up();
		if (user >= 0)
			become_user();
		else
			bound(by_default | (more < 0 ? 0 : 1ULL << more));
		/*
		 * A runtime sets none by default. A dump would include the setting, and a restored process loses its
		 * first parent at once.
		 */
		prctl(PR_SET_PDEATHSIG, parent_death, 0, 0, 0);
		signal(SIGPIPE, SIG_DFL);
		close(ready[1]);
		if (write(settled[1], "", 1) != 1 || read(ready[0], &byte, 1) != 1)
			_exit(125);
		take_stdio(out[1], err[1]);
		execv(command[0], command);
		fail(command[0]);
	}
	signal(SIGTERM, kill_child);
	signal(SIGINT, kill_child);
	close(out[1]);
	close(err[1]);
	close(settled[1]);
	/*
	 * A reader of the file finds the process in its cgroups and namespaces. A child that failed has printed the
	 * reason.
	 */
	if (read(settled[0], &byte, 1) == 1) {
		snprintf(text, sizeof text, "%d\n", child);
		write_or_fail(pid_file, text);
		if (write(ready[1], "", 1) != 1)
			fail("start");
	}
	pass_on(out[0], err[0]);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("wait");
	remove_groups(groups, group_count);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Answers every byte with a number that grows by one. */
static void *numbers(void *argument)
{
	int fd = *(int *)argument;
	unsigned count = 0;
	char byte;

	while (read(fd, &byte, 1) == 1) {
		count++;
		if (write(fd, &count, sizeof count) != sizeof count)
			break;
	}
	return NULL;
}

static int count(int port)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, pairs[2][2];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	unsigned counts[SERVERS] = { 0 };
	pthread_t thread;
	int log = open("/tmp/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (log < 0)
		fail("/tmp/log");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[0]) || socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[1]))
		fail("socketpair");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		close(pairs[0][0]);
		close(pairs[0][1]);
		close(pairs[1][0]);
		numbers(&pairs[1][1]);
		_exit(0);
	}
	close(pairs[1][1]);
	if (pthread_create(&thread, NULL, numbers, &pairs[0][1]))
		fail("thread");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 64))
		fail("listen");
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		char text[64];

		if (client < 0)
			continue;
		counts[0]++;
		for (int i = 0; i < 2; i++)
			if (write(pairs[i][0], "", 1) != 1 || read(pairs[i][0], &counts[i + 1], sizeof counts[0]) <= 0)
				fail("count");
		snprintf(text, sizeof text, "%u %u %u\n", counts[0], counts[1], counts[2]);
		if (write(log, text, strlen(text)) != (ssize_t)strlen(text))
			fail("/tmp/log");
		/* The client has left, but its request has counted. */
		if (send(client, text, strlen(text), MSG_NOSIGNAL) < 0)
			fprintf(stderr, "test-container: a client went away\n");
		close(client);
	}
}

static int ask(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 5 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[64];
	ssize_t length = 0, got;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		fail("connect");
	while (length < (ssize_t)sizeof text && (got = read(fd, text + length, sizeof text - (size_t)length)) > 0)
		length += got;
	if (length <= 0)
		fail("read");
	return write(1, text, (size_t)length) == length ? 0 : 1;
}

static long number(const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || end == text || value < 0 || value > 4294967294L)
		usage();
	return value;
}

int main(int argc, char **argv)
{
	int at = 2;

	if (argc == 3 && !strcmp(argv[1], "count"))
		return count((int)number(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "ask"))
		return ask((int)number(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "fill"))
		return fill((int)number(argv[2]), number(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "storm"))
		return storm((int)number(argv[2]));
	if (argc < 3 || strcmp(argv[1], "run"))
		usage();
	for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
		if (!strcmp(argv[at], "--dir"))
			directory = argv[at + 1];
		else if (!strcmp(argv[at], "--pid-file"))
			pid_file = argv[at + 1];
		else if (!strcmp(argv[at], "--cgroup"))
			group = argv[at + 1];
		else if (!strcmp(argv[at], "--user"))
			user = number(argv[at + 1]);
		else if (!strcmp(argv[at], "--capability"))
			more = number(argv[at + 1]) & 63;
		else if (!strcmp(argv[at], "--parent-death"))
			parent_death = number(argv[at + 1]);
		else if (!strcmp(argv[at], "--volume") && volume_count < VOLUMES)
			volumes[volume_count++] = argv[at + 1];
		else
			usage();
	}
	if (!directory || !pid_file || at + 1 >= argc || strcmp(argv[at], "--"))
		usage();
	return run(argv + at + 1);
}
