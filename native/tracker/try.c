/*
 * Tries what the tracker relies on, with a child of this program: other kernels may lack any of it, and some differ in
 * what they do to the marks of moved memory.
 */
#include "tracker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uffd.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { PAGE = 4096, PAGES = 16, SIZE = PAGES * PAGE, ROOM = 64 };

/*
 * Two neighbours that are one mapping, the first of which is moved away and back; the pages after that stay unchanged.
 */
struct memory {
	char *first, *second, *elsewhere;
};

static bool make_memory(struct memory *memory)
{
	char *all = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory->elsewhere = mmap(NULL, 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED || memory->elsewhere == MAP_FAILED)
		return false;
	memset(all, 1, 4 * SIZE);
	/* So that no other mapping merges with them. */
	munmap(all, SIZE);
	munmap(all + 3 * SIZE, SIZE);
	memory->first = all + SIZE;
	memory->second = all + 2 * SIZE;
	memory->elsewhere += SIZE;
	return true;
}

/* The child's part: each step waits for a byte, and answers with one. */
static void __attribute__((noreturn)) child(const struct memory *memory, int in, int out)
{
	char byte = 0;
	int source = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int step = 0; read(in, &byte, 1) == 1; step++) {
		if (step == 0) {
			memory->second[0] = 2;
			if (read(source, memory->second + PAGE, 16) != 16)
				_exit(1);
			mremap(memory->first, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, memory->elsewhere);
		} else {
			mremap(memory->elsewhere, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, memory->first);
			memory->second[3 * PAGE] = 3;
		}
		if (write(out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static bool step(int in, int out)
{
	char byte = 0;

	return write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1;
}

/* True if a page counts as written, as CRIU sees it through the shim. */
static bool is_written(int pagemap, const char *page)
{
	struct region region = { 0 };
	struct scan scan = { .size = sizeof scan, .start = (uint64_t)(uintptr_t)page, .vec_len = 1 };

	scan.end = scan.start + PAGE;
	scan.vec = (uint64_t)(uintptr_t)&region;
	scan.return_mask = IS_REGISTERED | IS_WRITTEN | IS_PRESENT;
	return ioctl(pagemap, SCAN, &scan) != 1 || !(region.categories & IS_REGISTERED) || (region.categories & IS_WRITTEN);
}

static bool protect(int pagemap)
{
	struct region regions[ROOM];
	struct scan scan = {
		.size = sizeof scan,
		.flags = SCAN_PROTECT,
		.end = 0x7ffffffff000,
		.vec = (uint64_t)(uintptr_t)regions,
		.vec_len = ROOM,
		.category_mask = IS_WRITTEN,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_WRITTEN,
	};

	for (; scan.start < scan.end; scan.start = scan.walk_end)
		if (ioctl(pagemap, SCAN, &scan) < 0)
			return false;
	return true;
}

struct trial {
	pid_t pid;
	int pidfd, uffd;
	const char *why;
};

static void *register_again(void *argument)
{
	struct trial *trial = argument;
	static struct held held;
	bool for_good;

	trial->why = hold(&held, trial->pid);
	if (!trial->why && trial->uffd < 0)
		trial->why = take_userfaultfd(&held, trial->pidfd, &trial->uffd, &for_good);
	if (!trial->why)
		trial->why = register_mappings(&held, trial->uffd);
	let_go(&held);
	return NULL;
}

static bool held_once(struct trial *trial)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, register_again, trial) != 0)
		return false;
	pthread_join(thread, NULL);
	return !trial->why;
}

static const char *run(struct trial *trial, const struct memory *memory, int pagemap, int in, int out)
{
	if (pagemap < 0 || !held_once(trial))
		return trial->why ? trial->why : "kernel";
	if (!is_written(pagemap, memory->second))
		return "new mappings";
	if (!protect(pagemap) || is_written(pagemap, memory->second + 2 * PAGE))
		return "protection";
	if (!step(in, out))
		return "child";
	if (!is_written(pagemap, memory->second))
		return "stores";
	if (!is_written(pagemap, memory->second + PAGE))
		return "system calls";
	if (!is_written(pagemap, memory->elsewhere) || is_written(pagemap, memory->second + 2 * PAGE))
		return "moves";
	if (!held_once(trial))
		return trial->why ? trial->why : "kernel";
	if (!step(in, out))
		return "child";
	if (!is_written(pagemap, memory->second + 3 * PAGE) || !held_once(trial) ||
	    !is_written(pagemap, memory->second + 3 * PAGE))
		return "merges";
	return NULL;
}

const char *try_kernel(void)
{
	struct memory memory;
	struct trial trial = { .uffd = -1 };
	int to[2], from[2], pagemap, status;
	char path[32];
	const char *why;

	if (!make_memory(&memory) || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		return "memory";
	trial.pid = fork();
	if (trial.pid < 0)
		return "memory";
	if (trial.pid == 0) {
		close(to[1]);
		close(from[0]);
		child(&memory, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	trial.pidfd = (int)syscall(SYS_pidfd_open, trial.pid, 0);
	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)trial.pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	why = run(&trial, &memory, pagemap, from[0], to[1]);
	kill(trial.pid, SIGKILL);
	waitpid(trial.pid, &status, 0);
	return why;
}
