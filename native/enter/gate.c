/*
 * Starting CRIU takes longer than dumping a small application. So that the application stands still only for the dump,
 * CRIU is started before it is stopped: at `pre-dump`, when it is about to look at the processes for the first time, it
 * says so and waits until it may. Both is said by files in its work directory, descriptor 202 of the keeper.
 *
 * It also waits until everything that is to be dumped really stands: a thread that has been told to stop does so when it
 * gets its turn, and when CRIU seizes a process of which some threads have stopped and others not yet, now and then one
 * of them neither stops nor is stopped, and CRIU waits for it for ever (1 of 200 dumps on a busy machine).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "enter.h"

/* 20 waits of 50 us, then of 1 ms: whoever takes longer waits for a device, and is not to be hurried. */
enum { WAIT_NS = 50000, LONG_WAIT_NS = 1000000, SHORT_WAITS = 20, LONG_WAITS = 60 * 1000 };

static void pause_a_moment(long waits)
{
	const struct timespec moment = { .tv_nsec = waits < SHORT_WAITS ? WAIT_NS : LONG_WAIT_NS };

	nanosleep(&moment, NULL);
}

struct pids {
	int *list;
	size_t count, room;
};

static bool add(struct pids *pids, int pid)
{
	if (pids->count == pids->room) {
		size_t room = pids->room ? 2 * pids->room : 64;
		int *list = realloc(pids->list, room * sizeof *list);

		if (!list)
			return false;
		pids->list = list;
		pids->room = room;
	}
	pids->list[pids->count++] = pid;
	return true;
}

static FILE *open_of_thread(int pid, const char *thread, const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%.16s/%s", pid, thread, name);
	return fopen(path, "re");
}

/* A zombie stands as well, and so does what is gone. */
static bool stands(int pid, const char *thread)
{
	FILE *file = open_of_thread(pid, thread, "stat");
	char text[512] = "", *state;
	size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file)
		fclose(file);
	text[length] = '\0';
	state = strrchr(text, ')');
	return !state || !state[1] || strchr("TtZX", state[2]);
}

static bool add_children(struct pids *pids, int pid, const char *thread)
{
	FILE *file = open_of_thread(pid, thread, "children");
	bool added = true;
	int child;

	while (file && added && fscanf(file, "%d", &child) == 1)
		added = add(pids, child);
	if (file)
		fclose(file);
	return added;
}

/* Of all threads of the first process here and of all below it, which is what is dumped. */
static bool all_stand(struct pids *pids)
{
	bool all = true;

	pids->count = 0;
	if (!add(pids, 1))
		return false;
	for (size_t i = 0; i < pids->count && all; i++) {
		struct dirent *entry;
		char path[32];
		DIR *threads;

		snprintf(path, sizeof path, "/proc/%d/task", pids->list[i]);
		threads = opendir(path);
		while (threads && all && (entry = readdir(threads)))
			if (isdigit((unsigned char)entry->d_name[0]))
				all = stands(pids->list[i], entry->d_name) && add_children(pids, pids->list[i], entry->d_name);
		if (threads)
			closedir(threads);
	}
	return all;
}

static int wait_until_all_stand(void)
{
	struct pids pids = { 0 };
	int code = 0;

	for (long waits = 0; !all_stand(&pids) && !code; waits++) {
		pause_a_moment(waits);
		if (waits > LONG_WAITS)
			code = fail("not all processes stopped");
	}
	free(pids.list);
	return code;
}

/* The directory is known by the name that CRIU started us by: /proc/KEEPER/fd/200/enter. */
static int open_work(const char *self)
{
	const char *end = strstr(self, "/fd/200/");
	char path[64];

	if (!end || strncmp(self, "/proc/", 6) != 0 || end - self > 32)
		return -1;
	snprintf(path, sizeof path, "%.*s/fd/202", (int)(end - self), self);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int wait_for_go(const char *self)
{
	int work = open_work(self), said;

	/* Only who asked for it by a file of this name opens the gate. */
	if (work < 0 || faccessat(work, "gate", F_OK, 0) != 0)
		return 0;
	said = openat(work, "ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (said < 0)
		return fail("ready: %s", strerror(errno));
	/* Here every moment counts: the pod is stopped when the file is there. */
	for (long waits = 0; faccessat(work, "go", F_OK, 0) != 0; waits++) {
		if (waits > LONG_WAITS * (LONG_WAIT_NS / WAIT_NS))
			return fail("nobody opened the gate");
		pause_a_moment(0);
	}
	if (wait_until_all_stand())
		return EXIT_OWN;
	/* From here on CRIU changes what it dumps for a while, and a sudden end would leave it changed. */
	said = openat(work, "begun", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return said < 0 ? fail("begun: %s", strerror(errno)) : 0;
}

bool dump_has_begun(int work)
{
	return faccessat(work, "begun", F_OK, 0) == 0;
}
