/*
 * sentinel: one small process on each node that outlives the agent. It notices deaths, redirects connections, resumes
 * stopped processes, and is the parent of every dump and restore. See docs/adr/0070-sentinel.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup_join.h"
#include "client.h"
#include "clock.h"
#include "daemon.h"
#include "halt.h"
#include "journal.h"
#include "killing.h"
#include "listen.h"
#include "log.h"
#include "memory_dir.h"
#include "number.h"
#include "remove.h"
#include "secret.h"
#include "spawn.h"
#include "stop.h"
#include "usage.h"
#include "voting.h"
#include "watch.h"

enum { EXIT_RUNNING = 3 };

struct signals {
	struct source source;
	struct sentinel *sentinel;
};

static bool parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "socket", required_argument, NULL, 's' },	  { "log", required_argument, NULL, 'l' },
		{ "nsrun", required_argument, NULL, 'n' },	  { "cgroup", required_argument, NULL, 'c' },
		{ "memory-dir", required_argument, NULL, 'm' },	  { "memory-bytes", required_argument, NULL, 'b' },
		{ "foreground", no_argument, NULL, 'f' },	  { 0 },
	};
	int option;

	*options = (struct options){ .socket = "/run/understudy/sentinel.sock" };
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (option) {
		case 's':
			options->socket = optarg;
			break;
		case 'l':
			options->log = optarg;
			break;
		case 'n':
			options->nsrun = optarg;
			break;
		case 'c':
			options->cgroup = optarg;
			if (!*optarg || strchr(optarg, '/') || *optarg == '.')
				return false;
			break;
		case 'm':
			options->memory_dir = optarg;
			break;
		case 'b':
			if (!parse_number(optarg, INT64_MAX, &options->memory_bytes) || options->memory_bytes == 0)
				return false;
			break;
		case 'f':
			options->foreground = true;
			break;
		default:
			return false;
		}
	return optind == argc && !options->memory_dir == !options->memory_bytes;
}

/* `leaves`: no sentinel follows, so nothing stays stopped. */
static void end(struct sentinel *sentinel, bool leaves)
{
	if (leaves)
		stops_end_all(sentinel);
	if (sentinel->ending) {
		spawns_kill_all(sentinel);
		return;
	}
	sentinel->ending = true;
	log_line("info", "ending", ",\"pid\":%d", (int)getpid());
	stops_continue_all(sentinel);
	/* A new client should find no sentinel, and start the next one when this one is gone. */
	unlink(sentinel->options->socket);
	secret_close(sentinel->options->socket);
}

static void read_signals(struct source *source, uint32_t events)
{
	struct sentinel *sentinel = ((struct signals *)source)->sentinel;
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof info) == (ssize_t)sizeof info) {
		pid_t pid;

		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			end(sentinel, info.ssi_signo == SIGINT);
		/* One SIGCHLD may stand for many children. */
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			spawn_ended(sentinel, pid);
	}
}

static bool signals_open(struct sentinel *sentinel)
{
	struct signals *signals = calloc(1, sizeof *signals);
	sigset_t taken;

	if (!signals)
		return false;
	sigemptyset(&taken);
	sigaddset(&taken, SIGTERM);
	sigaddset(&taken, SIGINT);
	sigaddset(&taken, SIGCHLD);
	sigprocmask(SIG_SETMASK, &taken, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signals->source = (struct source){ .fd = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC), .ready = read_signals };
	signals->sentinel = sentinel;
	sentinel->signals = &signals->source;
	return signals->source.fd >= 0 && loop_add(&sentinel->loop, &signals->source, EPOLLIN);
}

static int64_t due(void *context, int64_t now)
{
	struct sentinel *sentinel = context;
	/* Voting comes before what an earlier sentinel has stopped: a primary that may not serve yet stays stopped. */
	int64_t votes = voting_due(sentinel, now), stops = stops_due(sentinel, now), killings = killings_due(sentinel, now);
	int64_t rest = awake_while(&sentinel->awake, stops_hold(sentinel), now);
	const int64_t times[] = { votes, stops, killings, halts_due(sentinel, now), rest, watches_due(sentinel, now) };
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (times[i] < first)
			first = times[i];
	sentinel->loop.ended = sentinel->ending && !spawns_wait(sentinel) && !sentinel->killings;
	return first;
}

/*
 * The sentinel must notice a death even if the node is busy, out of memory or out of descriptors. It logs each
 * privilege that it cannot get.
 */
static void come_first(void)
{
	static const struct sched_param lowest = { .sched_priority = 1 };
	struct rlimit files;
	int fd;

	/* Uses the system call: musl's function of that name only returns ENOSYS. */
	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0 &&
	    setpriority(PRIO_PROCESS, 0, -20) != 0)
		log_failure("no priority over other processes", errno);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "-999", 4) < 0)
		log_failure("no protection from the out-of-memory killer", errno);
	close(fd);
	if (mlockall(MCL_CURRENT) != 0)
		log_failure("memory is not locked", errno);
}

/* The end is not urgent. With priority, a check for leaks that waits for another process would keep that from running. */
static void come_last(void)
{
	static const struct sched_param none = { .sched_priority = 0 };

	syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

static int fail(const char *what, int error)
{
	log_failure(what, error);
	return EXIT_FAILED;
}

static int serve(const struct options *options, int ready)
{
	/* Static, so that memory it refers to at exit counts as in use and not as leaked. */
	static struct sentinel sentinel;
	int listener, result;

	sentinel.options = options;
	sentinel.started_unix_ns = unix_ns();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!loop_open(&sentinel.loop) || !signals_open(&sentinel))
		return fail("cannot wait for events", errno);
	if (!journal_open(options->socket))
		return fail("cannot keep a journal of stops", errno);
	stops_recover(&sentinel);
	/* The secret must exist before any client can connect, because a client reads it first. */
	if (!secret_open(options->socket))
		return fail("cannot keep a secret", errno);
	if (!voting_open(&sentinel))
		return fail("cannot read what an earlier sentinel has promised", errno);
	listener = listen_unix(options->socket);
	if (listener < 0 || !clients_accept(&sentinel, listener))
		return fail("cannot listen", errno);
	come_first();
	awake_open(&sentinel.awake);
	log_line("info", "sentinel", ",\"version\":\"%s\",\"pid\":%d", UNDERSTUDY_VERSION, (int)getpid());
	if (ready >= 0)
		daemon_ready(ready, !options->log);
	result = loop_run(&sentinel.loop, due, &sentinel);
	if (result != 0)
		log_failure("cannot wait for events", errno);
	stops_continue_all(&sentinel);
	come_last();
	log_line("info", "ended", ",\"pid\":%d", (int)getpid());
	return result == 0 ? 0 : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	char what[4200] = "";
	struct options options;
	int ready = -1;

	if (argc == 2 && strcmp(argv[1], "version") == 0) {
		puts("sentinel " UNDERSTUDY_VERSION);
		return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	if (argc == 3 && strcmp(argv[1], "programs") == 0)
		return program_dir_mount(argv[2]) ? 0 : fail("cannot mount the file system for programs", errno);
	if (argc > 4 && strcmp(argv[1], "remove") == 0 && strcmp(argv[2], "--cgroup") == 0) {
		if (remove_all(argv + 4, argv[3], what, sizeof what))
			return 0;
		log_line("error", "cannot remove", ",\"path\":\"%s\"", log_safe(what));
		return fail("remove", errno);
	}
	if (!parse_options(argc, argv, &options))
		return usage(stderr, EXIT_USAGE);
	umask(077);
	if (instance_lock(options.socket) < 0) {
		int error = errno;

		/*
		 * A new agent may want more room for memory than the running sentinel, which guards pods and stays, was
		 * started with.
		 */
		if (error == EWOULDBLOCK && options.memory_dir && !memory_dir_resize(options.memory_dir, options.memory_bytes))
			return fail("cannot resize the file system for memory", errno);
		log_failure(error == EWOULDBLOCK ? "another sentinel is running" : "cannot lock", error);
		return error == EWOULDBLOCK ? EXIT_RUNNING : EXIT_FAILED;
	}
	if (options.memory_dir && !memory_dir_mount(options.memory_dir, options.memory_bytes))
		return fail("cannot mount the file system for memory", errno);
	if (!options.foreground && !daemon_begin(&ready))
		return fail("cannot leave the caller", errno);
	/* After the daemon has left its caller: a process in the caller's cgroup would die with that cgroup. */
	if (options.cgroup && !cgroup_settle(options.cgroup, what, sizeof what)) {
		log_line("error", "cannot live in a cgroup of its own", ",\"cgroup\":\"%s\"", log_safe(what));
		return fail("cgroup", errno);
	}
	if (options.log && !log_open(options.log))
		return fail("cannot open the log", errno);
	return serve(&options, ready);
}
