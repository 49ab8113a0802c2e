/*
 * A userfaultfd belongs to the address space of the process that makes it, so the process has to make it. One of its
 * threads runs two system calls with the `syscall` instruction of its vDSO: nothing is written into its memory, and it
 * keeps no descriptor. Its other threads are stopped meanwhile, so no child can inherit the descriptor.
 *
 * The process may have changed its vDSO, and another one may write to it. So every wait has a bound, and the descriptor
 * that comes back is checked: it can only be a userfaultfd of the same tenant.
 *
 * Long because the thread must continue exactly where it was, whatever goes wrong between the first register and the last.
 */
#include "tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "uffd.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* NULL: it is a userfaultfd, and the kernel can track with it. */
static const char *check(int fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	char path[32], target[64];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof target - 1);
	target[length < 0 ? 0 : length] = 0;
	if (strcmp(target, "anon_inode:[userfaultfd]") != 0)
		return "forged";
	return ioctl(fd, UFFDIO_API, &api) == 0 ? NULL : "kernel";
}

#if defined(__x86_64__)
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "clock.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
/* rseq since 5.13, dispatch since 6.4. */
enum { GET_RSEQ = 0x420f, GET_DISPATCH = 0x4211 };
enum { CODE_64 = 0x33, CALL_NS = 1000 * 1000 * 1000 };
/* The kernel's own: a system call that a stop has interrupted. */
enum { RESTART_SYS = 512, RESTART_NOINTR = 513, RESTART_NOHAND = 514, RESTART_BLOCK = 516 };

static bool read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* The address of a `syscall` instruction in the vDSO; 0: none. */
static uint64_t find_instruction(pid_t pid)
{
	char path[32], line[512];
	unsigned char code[64 * 1024];
	uint64_t found = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof line, maps)) {
		unsigned long start, end;

		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2 || end <= start ||
		    end - start > sizeof code || !read_memory(pid, start, code, end - start))
			continue;
		for (size_t i = 0; i + 1 < end - start && !found; i++)
			if (code[i] == 0x0f && code[i + 1] == 0x05)
				found = start + i;
	}
	if (maps)
		fclose(maps);
	return found;
}

/*
 * True if a restartable sequence is under way. The kernel would not notice that it was interrupted, because the thread
 * enters user space at another address.
 */
static bool in_sequence(pid_t pid, pid_t thread, uint64_t at)
{
	struct {
		uint64_t pointer;
		uint32_t size, signature, flags, padding;
	} config = { 0 };
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} sequence;
	uint64_t current;

	if (ptrace(GET_RSEQ, thread, sizeof config, &config) <= 0 || !config.pointer)
		return false;
	if (!read_memory(pid, config.pointer + 8, &current, sizeof current))
		return true;
	if (!current)
		return false;
	return !read_memory(pid, current, &sequence, sizeof sequence) || at - sequence.start < sequence.length;
}

/* True if system calls from outside of a range become signals. */
static bool dispatches(pid_t thread)
{
	struct {
		uint64_t mode, selector, offset, length;
	} config = { 0 };

	return ptrace(GET_DISPATCH, thread, sizeof config, &config) == 0 && config.mode != 0;
}

/*
 * Lets the thread run until it enters the call, or leaves it. A thread that gets no processor for so long is interrupted:
 * most likely it runs code that the tenant has put there.
 */
static bool run_to_stop(pid_t thread)
{
	if (ptrace(PTRACE_SYSCALL, thread, NULL, NULL) != 0)
		return false;
	if (await_stop(thread, monotonic_ns() + CALL_NS) >= 0)
		return true;
	ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	return await_stop(thread, monotonic_ns() + CALL_NS) >= 0;
}

/* False: the thread did not make this call. */
static bool call(pid_t thread, uint64_t instruction, long number, long argument, long *result)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0)
		return false;
	registers.rip = instruction;
	registers.rax = (unsigned long)number;
	registers.orig_rax = ~0ULL;
	registers.rdi = (unsigned long)argument;
	if (ptrace(PTRACE_SETREGS, thread, NULL, &registers) != 0)
		return false;
	for (int stop = 0; stop < 2; stop++)
		if (!run_to_stop(thread) || ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0 ||
		    registers.orig_rax != (unsigned long)number)
			return false;
	*result = (long)registers.rax;
	return true;
}

/*
 * The registers from which the thread continues. The kernel restarts an interrupted system call only at the end of a
 * signal stop, and the stop after ours is none.
 */
static struct user_regs_struct continued(struct user_regs_struct registers)
{
	if ((long)registers.orig_rax >= 0)
		switch (-(long)registers.rax) {
		case RESTART_SYS:
		case RESTART_NOINTR:
		case RESTART_NOHAND:
			registers.rax = registers.orig_rax;
			registers.rip -= 2;
			break;
		case RESTART_BLOCK:
			registers.rax = SYS_restart_syscall;
			registers.rip -= 2;
			break;
		}
	registers.orig_rax = ~0ULL;
	return registers;
}

static const char *make(pid_t thread, uint64_t instruction, int pidfd, int *uffd, bool *for_good)
{
	long made, closed;

	*for_good = true;
	if (!call(thread, instruction, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, &made))
		return "forged";
	if (made < 0) {
		*for_good = made != -EMFILE && made != -ENOMEM;
		return made == -EMFILE ? "files" : made == -ENOMEM ? "memory" : "denied";
	}
	*uffd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)made, 0);
	if (!call(thread, instruction, SYS_close, made, &closed) || closed != 0 || *uffd < 0)
		return "forged";
	fcntl(*uffd, F_SETFD, FD_CLOEXEC);
	return check(*uffd);
}

/* A thread that waits to receive a signal cannot be used, nor one in a restartable sequence. */
static pid_t usable_thread(const struct held *held, struct user_regs_struct *registers)
{
	for (int i = 0; i < held->count; i++) {
		const pid_t thread = held->threads[i].id;

		if (!held->threads[i].signal && ptrace(PTRACE_GETREGS, thread, NULL, registers) == 0 && registers->cs == CODE_64 &&
		    !in_sequence(held->pid, thread, registers->rip) && !dispatches(thread))
			return thread;
	}
	return 0;
}

const char *take_userfaultfd(const struct held *held, int pidfd, int *uffd, bool *for_good)
{
	const uint64_t instruction = find_instruction(held->pid), all = ~0ULL;
	struct user_regs_struct registers;
	const pid_t thread = usable_thread(held, &registers);
	const char *why;
	uint64_t mask;

	*for_good = false;
	*uffd = -1;
	if (!thread)
		return "busy";
	if (!instruction || ptrace(PTRACE_GETSIGMASK, thread, sizeof mask, &mask) != 0 ||
	    ptrace(PTRACE_SETSIGMASK, thread, sizeof all, &all) != 0) {
		*for_good = true;
		return "machine";
	}
	why = make(thread, instruction, pidfd, uffd, for_good);
	registers = continued(registers);
	ptrace(PTRACE_SETREGS, thread, NULL, &registers);
	ptrace(PTRACE_SETSIGMASK, thread, sizeof mask, &mask);
	if (why && *uffd >= 0) {
		close(*uffd);
		*uffd = -1;
	}
	return why;
}
#else
const char *take_userfaultfd(const struct held *held, int pidfd, int *uffd, bool *for_good)
{
	(void)held;
	(void)pidfd;
	(void)check;
	*uffd = -1;
	*for_good = true;
	return "machine";
}
#endif
