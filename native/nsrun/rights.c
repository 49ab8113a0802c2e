/*
 * Gives a program only the rights of its purpose, because it works in a container on files that an application or
 * another node has made. The lists are complete: everything started here loses all other capabilities, in the bounding
 * set too. An attacker who controls CRIU still is root with CAP_SYS_ADMIN, but has no modules, no raw devices and no
 * other kernel.
 *
 * Only programs that leave no process in the container get a filter of system calls, because a process keeps its filter
 * for ever: so not a restore. A dump gets none either, because the kernel hides other processes' filters from a
 * filtered one.
 */
#include "nsrun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ULL << (capability))

/* Files of any owner, their owners, modes and times; links too. */
#define FILES                                                                                                               \
	(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_SETUID) | BIT(CAP_SETGID))
/* Processes of any user, their memory, sockets, namespaces, limits and priorities. */
#define PROCESSES                                                                                                           \
	(BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_KILL) | BIT(CAP_NET_ADMIN) | BIT(CAP_SYS_RESOURCE) |             \
	 BIT(CAP_SYS_NICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_IPC_OWNER) | BIT(CAP_IPC_LOCK) | BIT(CAP_SETPCAP) |               \
	 BIT(CAP_CHECKPOINT_RESTORE_))
/* Since Linux 5.9. */
enum { CAP_CHECKPOINT_RESTORE_ = 40 };

struct purpose {
	const char *name;
	uint64_t needed;
	bool with_container; /* plus the container's own capabilities, because restored processes can only get them from CRIU */
	bool filtered;
	bool copies_directory;
};

static const struct purpose purposes[] = {
	/* A deleted file with another name is linked by its descriptor, which takes CAP_DAC_READ_SEARCH. */
	{ "dump", FILES | PROCESSES | BIT(CAP_DAC_READ_SEARCH), false, false, false },
	/* Clocks continue where they were, and the login id is the dumped one: CAP_SYS_TIME and CAP_AUDIT_CONTROL. */
	{ "restore", FILES | PROCESSES | BIT(CAP_SYS_TIME) | BIT(CAP_AUDIT_CONTROL), true, false, false },
	/*
	 * Reads images, fills memory by descriptors, and kills the application on a failure; CRIU checks for the last
	 * capability.
	 */
	{ "pages", BIT(CAP_KILL) | BIT(CAP_CHECKPOINT_RESTORE_), false, true, false },
	/*
	 * The tracker holds processes of any user by ptrace, with priority, looks at their mappings and suspends their filters
	 * of system calls, which a filtered process may not.
	 */
	{ "track", BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_NICE), false, false, false },
	/* `rootfs` and tar: a mount namespace and a root directory of their own, and files of all kinds in it. */
	{ "files",
	  FILES | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_CHROOT) | BIT(CAP_SYS_PTRACE) | BIT(CAP_MKNOD) | BIT(CAP_SETFCAP) |
		  BIT(CAP_SYS_NICE),
	  false, true, true },
};

static const char variable[] = "UNDERSTUDY_FOR";

/* Denied to every filtered program. */
static const unsigned refused[] = {
	SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_bpf, SYS_open_by_handle_at, SYS_swapon,
	SYS_swapoff, SYS_reboot, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_acct, SYS_quotactl,
	SYS_perf_event_open, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_syslog, SYS_fanotify_init, SYS_pivot_root,
	SYS_io_uring_setup, SYS_setns, SYS_process_vm_writev,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
	SYS_iopl, SYS_ioperm,
#endif
};

enum { REFUSED = sizeof refused / sizeof *refused };

#if defined(__x86_64__)
enum { MACHINE = AUDIT_ARCH_X86_64 };
#else
enum { MACHINE = AUDIT_ARCH_AARCH64 };
#endif
/* A second way to the calls of x86_64. */
enum { X32 = 0x40000000 };

static int filter(void)
{
	struct sock_filter code[REFUSED + 6], *at = code;
	struct sock_fprog program = { .filter = code };

	/* Denies with EPERM, like a missing permission; allows unknown calls. */
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)MACHINE, 0, REFUSED + 3);
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, REFUSED + 1, 0);
	for (unsigned char i = 0; i < REFUSED; i++)
		*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], (unsigned char)(REFUSED - i), 0);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	program.len = (unsigned short)(at - code);
	/* Without the speculation mitigations, which protect only a process that runs foreign code and cost speed. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program))
		return fail("filter of system calls: %s", strerror(errno));
	return 0;
}

/* Returns the bounding set of a container's first process; 0 if it cannot be read. */
static uint64_t bounds_of(pid_t pid)
{
	char path[32], text[4096], *line;
	ssize_t length;
	int file;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	length = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	text[length < 0 ? 0 : length] = 0;
	line = strstr(text, "\nCapBnd:");
	return line ? strtoull(line + 8, NULL, 16) : 0;
}

static int give_up_all_but(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
		if (!(kept & BIT(capability)) && prctl(PR_CAPBSET_DROP, capability))
			return fail("capability %d: %s", capability, strerror(errno));
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, sets))
		return fail("capabilities: %s", strerror(errno));
	for (int half = 0; half < 2; half++) {
		sets[half].permitted &= (uint32_t)(kept >> (32 * half));
		sets[half].effective = sets[half].permitted;
		sets[half].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, sets))
		return fail("capabilities: %s", strerror(errno));
	return 0;
}

int rights_of_purpose(pid_t container, struct rights *rights)
{
	const char *name = getenv(variable);

	*rights = (struct rights){ .kept = ~0ULL };
	if (!name)
		return 0;
	for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
		if (strcmp(purposes[i].name, name) == 0) {
			rights->kept = purposes[i].needed | (purposes[i].with_container ? bounds_of(container) : 0);
			rights->filtered = purposes[i].filtered;
			rights->secluded = true;
			rights->copies_directory = purposes[i].copies_directory;
			unsetenv(variable);
			return 0;
		}
	return fail("%s=%s is not known", variable, name);
}

int give_up_rights(const struct rights *rights)
{
	if (rights->kept == ~0ULL)
		return 0;
	/* The filter first: without CAP_SYS_ADMIN the kernel would require no_new_privs. */
	if (rights->filtered && filter())
		return EXIT_OWN;
	return give_up_all_but(rights->kept);
}
