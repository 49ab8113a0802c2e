#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100, PAUSE_NS = 1000000 };

static bool add(pid_t pid, int signal, struct processes *set)
{
	struct process_stat stat;
	struct process process;

	process_step();
	if (processes_have(set, pid) || !process_stat(pid, &stat))
		return true;
	process = (struct process){ .pid = pid, .start = stat.start };
	if (!processes_add(set, process)) {
		errno = ENOMEM;
		return false;
	}
	if (signal)
		process_signal(process, signal);
	return true;
}

/* Adds the children of one thread: a file of numbers separated by spaces. A read may end inside a number. */
static bool add_children_of_thread(int tasks, const char *thread, int signal, struct processes *set)
{
	char path[300], text[4096];
	pid_t pid = 0;
	ssize_t n;
	int fd;
	bool added = true;

	snprintf(path, sizeof path, "%s/children", thread);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		/* The thread may have ended. If it lives and the file is missing, this kernel does not support it. */
		if (errno == ENOENT && faccessat(tasks, thread, F_OK, 0) == 0) {
			errno = ENOENT;
			return false;
		}
		return true;
	}
	while (added && (n = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; added && i < n; i++)
			if (isdigit((unsigned char)text[i])) {
				pid = pid * 10 + (text[i] - '0');
			} else if (pid) {
				added = add(pid, signal, set);
				pid = 0;
			}
	close(fd);
	return added && (!pid || add(pid, signal, set));
}

static bool add_children(pid_t pid, int signal, struct processes *set)
{
	char path[32];
	struct dirent *entry;
	DIR *tasks;
	bool added = true;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return true;
	while (added && (entry = readdir(tasks)))
		if (isdigit((unsigned char)entry->d_name[0]))
			added = add_children_of_thread(dirfd(tasks), entry->d_name, signal, set);
	closedir(tasks);
	return added;
}

/* Walks the whole set, including the processes that this call adds. */
static bool add_descendants(int signal, struct processes *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!add_children(set->list[i].pid, signal, set))
			return false;
	return true;
}

bool tree_collect(struct process root, int signal, struct processes *set)
{
	if (process_signal(root, signal) != 0)
		return false;
	if (!processes_add(set, root)) {
		errno = ENOMEM;
		return false;
	}
	return add_descendants(signal, set);
}

bool tree_collect_again(struct processes *set, bool *complete)
{
	size_t before = set->count;
	bool standing = true;

	for (size_t i = 0; i < set->count && standing; i++)
		standing = process_stopped(set->list[i]);
	if (!add_descendants(SIGSTOP, set))
		return false;
	*complete = standing && set->count == before;
	return true;
}

bool tree_children(struct process parent, struct processes *set)
{
	return add_children(parent.pid, 0, set);
}

void tree_reap_others(pid_t kept)
{
	struct processes set = { 0 };

	add_children(getpid(), 0, &set);
	for (size_t i = 0; i < set.count; i++)
		if (set.list[i].pid != kept)
			waitpid(set.list[i].pid, NULL, WNOHANG);
	processes_free(&set);
}

bool tree_holds_self(pid_t pid)
{
	struct process_stat stat;

	for (pid_t at = getpid(); at > 0; at = stat.parent) {
		if (at == pid)
			return true;
		if (!process_stat(at, &stat))
			return false;
	}
	return false;
}

/* The init of a pid namespace adopts orphans, but they keep their session unless they make one of their own. */
static void add_session(pid_t session, struct processes *set)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		return;
	while ((entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		struct process_stat stat;

		if (pid > 0 && process_stat(pid, &stat) && stat.session == session && !processes_have(set, pid) &&
		    !tree_holds_self(pid))
			tree_collect((struct process){ .pid = pid, .start = stat.start }, SIGSTOP, set);
	}
	closedir(proc);
}

size_t tree_kill(struct process root)
{
	struct processes set = { 0 };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct process_stat stat;
	bool complete = false;
	size_t killed = 0;
	/*
	 * Only a session that the root leads: the caller's own session may hold its parent and the process that started
	 * it.
	 */
	bool leads = process_stat(root.pid, &stat) && stat.start == root.start && stat.session == root.pid;

	tree_collect(root, SIGSTOP, &set);
	for (int round = 0; round < ROUNDS && !complete; round++) {
		if (leads)
			add_session(root.pid, &set);
		if (!tree_collect_again(&set, &complete))
			break;
		if (!complete)
			nanosleep(&pause, NULL);
	}
	for (size_t i = 0; i < set.count; i++)
		killed += process_signal(set.list[i], SIGKILL) == 0;
	processes_free(&set);
	return killed;
}
