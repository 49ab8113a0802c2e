/*
 * A userfaultfd belongs to the address space of the process that makes it, so the process has to make it. One of its
 * threads runs two system calls with the `syscall` instruction of its vDSO: nothing is written into its memory, and it
 * keeps no descriptor. Its other threads are stopped meanwhile, so no child can inherit the descriptor.
 *
 * The process may have changed its vDSO, and another one may write to it. So every wait has a bound, every call is checked
 * when the thread enters it, and the descriptor that comes back is, too: it can only be a userfaultfd of the same tenant.
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

#if defined(__x86_64__)
#include <linux/audit.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "clock.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif
/* Calls since 5.3, rseq since 5.13, dispatch since 6.4. */
enum { GET_CALL = 0x420e, GET_RSEQ = 0x420f, GET_DISPATCH = 0x4211 };
enum { CODE_64 = 0x33, CALL_STOP = SIGTRAP | 0x80, CALL_NS = 1000 * 1000 * 1000 };
/* While these count, each system call stops the thread before its own filter would look at it. */
enum { OPTIONS = PTRACE_O_SUSPEND_SECCOMP | PTRACE_O_TRACESYSGOOD };
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

/* The thread that makes the calls. */
struct worker {
	pid_t id;
	int *signal; /* to pass on with the next step */
	uint64_t instruction;
	int64_t until; /* monotonic, ns */
};

/* How far a call has come. `SLOW`: the thread has not entered it, `INSIDE`: it has not left it. */
enum progress { MADE, SLOW, INSIDE, FORGED };

/* Signals that only the code of the thread can have caused: it ran something else than the instruction. */
static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP ||
	       signal == SIGSYS;
}

/*
 * Lets the thread run until it enters the call, or leaves it. It may stop for other reasons: SIGCONT to the process, or
 * SIGSTOP, which cannot be blocked and is passed on at once, as the kernel keeps count of both. A thread that gets no
 * processor for so long is interrupted: most likely it runs code that the tenant has put there.
 */
static enum progress run_to_stop(const struct worker *worker)
{
	for (bool over = false; !over;) {
		const long signal = *worker->signal;
		int status;

		*worker->signal = 0;
		if (ptrace(PTRACE_SYSCALL, worker->id, NULL, signal) != 0)
			return SLOW;
		status = await_stop(worker->id, worker->until);
		over = monotonic_ns() > worker->until;
		if (status < 0) {
			ptrace(PTRACE_INTERRUPT, worker->id, NULL, NULL);
			status = await_stop(worker->id, monotonic_ns() + CALL_NS);
			over = true;
		}
		if (status < 0)
			return SLOW;
		if (WSTOPSIG(status) == CALL_STOP)
			return MADE;
		if (status >> 16 == EVENT_STOP)
			continue;
		if (is_fault(WSTOPSIG(status)))
			return FORGED;
		*worker->signal = WSTOPSIG(status);
	}
	return SLOW;
}

/* True if the thread is about to make exactly this call: not that of another machine with the same number. */
static bool has_entered(pid_t thread, long number, long argument)
{
	struct {
		uint8_t where, padding[3];
		uint32_t machine;
		uint64_t instruction, stack, number, arguments[6];
	} info = { 0 };

	return ptrace(GET_CALL, thread, sizeof info, &info) > 0 && info.where == 1 && info.machine == AUDIT_ARCH_X86_64 &&
	       info.number == (unsigned long)number && info.arguments[0] == (unsigned long)argument;
}

static enum progress call(const struct worker *worker, long number, long argument, long *result)
{
	struct user_regs_struct registers;
	enum progress progress;

	if (ptrace(PTRACE_GETREGS, worker->id, NULL, &registers) != 0)
		return SLOW;
	registers.rip = worker->instruction;
	registers.rax = (unsigned long)number;
	registers.orig_rax = ~0ULL;
	registers.rdi = (unsigned long)argument;
	if (ptrace(PTRACE_SETREGS, worker->id, NULL, &registers) != 0)
		return SLOW;
	progress = run_to_stop(worker);
	if (progress != MADE)
		return progress;
	if (!has_entered(worker->id, number, argument))
		return FORGED;
	if (run_to_stop(worker) != MADE || ptrace(PTRACE_GETREGS, worker->id, NULL, &registers) != 0)
		return INSIDE;
	*result = (long)registers.rax;
	return MADE;
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

/* The process must not keep the descriptor: CRIU would refuse the process then. */
static const char *close_in_process(struct worker *worker, long number)
{
	long result = -1;
	enum progress progress = call(worker, SYS_close, number, &result);

	if (progress == SLOW) {
		worker->until = monotonic_ns() + CALL_NS;
		progress = call(worker, SYS_close, number, &result);
	}
	if (progress == MADE)
		return result == 0 ? NULL : "forged";
	return progress == FORGED ? "forged" : "slow";
}

static const char *make(struct worker *worker, int pidfd, int *uffd, bool *for_good)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	const char *why, *open;
	long made;

	*for_good = true;
	switch (call(worker, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, &made)) {
	case MADE:
		break;
	case FORGED:
		return "forged";
	default:
		return "slow";
	}
	if (made < 0) {
		*for_good = made != -EMFILE && made != -ENOMEM;
		return made == -EMFILE ? "files" : made == -ENOMEM ? "memory" : "denied";
	}
	why = take_over(pidfd, (int)made, uffd);
	open = close_in_process(worker, made);
	if (open)
		return open;
	if (why) {
		*for_good = strcmp(why, "forged") == 0;
		return why;
	}
	return ioctl(*uffd, UFFDIO_API, &api) == 0 ? NULL : "kernel";
}

/* The index of a thread; -1: none. One that waits to receive a signal cannot be used, nor one in a restartable sequence. */
static int usable_thread(const struct held *held, struct user_regs_struct *registers)
{
	for (int i = 0; i < held->count; i++) {
		const pid_t thread = held->threads[i].id;

		if (!held->threads[i].signal && ptrace(PTRACE_GETREGS, thread, NULL, registers) == 0 && registers->cs == CODE_64 &&
		    !in_sequence(held->pid, thread, registers->rip) && !dispatches(thread))
			return i;
	}
	return -1;
}

/* True if the thread is as it was, and subject to its own filter again before it may run. */
static bool restore(pid_t thread, struct user_regs_struct registers, uint64_t mask)
{
	registers = continued(registers);
	return ptrace(PTRACE_SETREGS, thread, NULL, &registers) == 0 &&
	       ptrace(PTRACE_SETSIGMASK, thread, sizeof mask, &mask) == 0 && ptrace(PTRACE_SETOPTIONS, thread, NULL, 0L) == 0;
}

const char *take_userfaultfd(struct held *held, int pidfd, int *uffd, bool *for_good)
{
	const uint64_t all = ~0ULL;
	struct user_regs_struct registers;
	struct worker worker = { .instruction = find_instruction(held->pid) };
	const int index = usable_thread(held, &registers);
	const char *why;
	uint64_t mask;

	*for_good = false;
	*uffd = -1;
	if (index < 0)
		return "busy";
	worker.id = held->threads[index].id;
	worker.signal = &held->threads[index].signal;
	if (!worker.instruction || ptrace(PTRACE_GETSIGMASK, worker.id, sizeof mask, &mask) != 0 ||
	    ptrace(PTRACE_SETSIGMASK, worker.id, sizeof all, &all) != 0) {
		*for_good = true;
		return "machine";
	}
	worker.until = monotonic_ns() + CALL_NS;
	why = "machine";
	*for_good = true;
	/* Only here, where it is stopped: before that, it would run without its filter. */
	if (ptrace(PTRACE_SETOPTIONS, worker.id, NULL, (long)OPTIONS) == 0)
		why = make(&worker, pidfd, uffd, for_good);
	if (!restore(worker.id, registers, mask)) {
		*for_good = true;
		why = "stuck";
	}
	if (why && *uffd >= 0) {
		close(*uffd);
		*uffd = -1;
	}
	return why;
}
#else
const char *take_userfaultfd(struct held *held, int pidfd, int *uffd, bool *for_good)
{
	(void)held;
	(void)pidfd;
	*uffd = -1;
	*for_good = true;
	return "machine";
}
#endif
