/*
 * A layer brings only files that its container could have made itself: archives come from other nodes, and a program
 * that gives rights to its caller is as dangerous as those rights. So tar makes all files without set-id bits, and may
 * not make devices or give programs capabilities. The bits are set afterwards on the actual file, according to its
 * owner. At no moment can a process find a bit that the container may not have.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rootfs.h"

enum { REPORTED = 10 };

struct report {
	size_t count;
};

static void leave_out(struct report *report, const char *path, const char *what)
{
	if (report->count++ < REPORTED)
		fail("%.300s: without %s", path, what);
}

bool may_all(const struct may *may)
{
	return may->users.any && may->groups.any && may->capabilities && may->devices;
}

bool ids_add(struct ids *ids, const char *word)
{
	char *end;

	if (strcmp(word, "any") == 0)
		return ids->any = true;
	ids->items = realloc(ids->items, (ids->count + 1) * sizeof *ids->items);
	if (!ids->items || *word < '0' || *word > '9')
		return false;
	ids->items[ids->count++] = (uint32_t)strtoul(word, &end, 10);
	return !*end;
}

static bool ids_have(const struct ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->count; i++)
		if (ids->items[i] == id)
			return true;
	return ids->any;
}

/* Also for programs started from here: root would regain the rights by running one. */
static int give_up(const struct may *may)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];
	uint32_t kept = ~0U;

	if (!may->devices)
		kept &= ~(1U << CAP_MKNOD);
	if (!may->capabilities)
		kept &= ~(1U << CAP_SETFCAP);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capget, &header, sets))
		return fail("capabilities: %s", strerror(errno));
	sets[0].permitted &= kept;
	sets[0].effective &= kept;
	sets[0].inheritable &= kept;
	return syscall(SYS_capset, &header, sets) ? fail("capabilities: %s", strerror(errno)) : 0;
}

static int extract(const struct may *may, const struct paths *excluded)
{
	int status;
	pid_t tar = fork();

	if (tar < 0)
		return fail("tar: %s", strerror(errno));
	if (tar == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(give_up(may) ? EXIT_OWN : tar_extract(excluded, may));
	}
	if (waitpid(tar, &status, 0) < 0)
		return fail("tar: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : fail("tar: signal %d", WTERMSIG(status));
}

/* Decides by the actual file, wherever the archive has it from. */
static int give_bits(const struct may *may, int root, const struct member *member, struct report *report)
{
	const char *name;
	int parent = open_parent_of(root, member->path, &name), file, code = 0;
	mode_t bits = member->bits;
	struct stat status;

	file = parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (parent >= 0)
		close(parent);
	/* Another member, or a process that shares the directory, has replaced the file. */
	if (file < 0)
		return 0;
	if (fstat(file, &status)) {
		code = fail("%s: %s", member->path, strerror(errno));
	} else if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
		/* In a directory they give no rights. */
		if (S_ISREG(status.st_mode) && bits & S_ISUID && !ids_have(&may->users, status.st_uid)) {
			bits &= ~(mode_t)S_ISUID;
			leave_out(report, member->path, "its set-user-ID bit");
		}
		if (S_ISREG(status.st_mode) && bits & S_ISGID && !ids_have(&may->groups, status.st_gid)) {
			bits &= ~(mode_t)S_ISGID;
			leave_out(report, member->path, "its set-group-ID bit");
		}
		if ((status.st_mode & MEMBER_BITS) != bits && fchmod(file, (status.st_mode & 0777) | bits))
			code = fail("%s: mode: %s", member->path, strerror(errno));
	}
	close(file);
	return code;
}

int bring(const struct may *may, int root, struct paths *excluded)
{
	struct members members = { 0 };
	struct report report = { 0 };
	const struct clear kept = { .kept = excluded };
	int code;

	if (may_all(may))
		return tar_extract(excluded, may);
	if (members_read(&members, FD_ARCHIVE))
		return EXIT_OWN;
	for (size_t i = 0; i < members.count; i++) {
		struct member *member = &members.items[i];

		if (is_kept(&kept, member->path)) {
			member->bits = 0;
		} else if (!may->devices && (member->type == '3' || member->type == '4')) {
			paths_add(excluded, member->path);
			leave_out(&report, member->path, "a device");
		} else if (!may->capabilities && member->has_capabilities) {
			leave_out(&report, member->path, "its capabilities");
		}
	}
	paths_sort(excluded);
	code = extract(may, excluded);
	for (size_t i = 0; i < members.count && !code; i++)
		if (!is_kept(&kept, members.items[i].path) && (members.items[i].bits || members.items[i].type == '5'))
			code = give_bits(may, root, &members.items[i], &report);
	if (report.count > REPORTED)
		fail("and %zu more", report.count - REPORTED);
	return code;
}
