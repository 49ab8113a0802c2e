/*
 * Directories of the node that a program works with in a container. CRIU opens what images name, as root and inside of the
 * container, and the images are another node's: /proc/PID/fd/200/../../etc is a name, too. A copy of the mount that begins
 * at the directory and is mounted nowhere has nothing above it.
 */
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
/* Of <linux/mount.h>, which libcs have only since lately. */
enum { TREE_CLONE = 1, ATTR_RDONLY = 1 };

struct attributes {
	unsigned long long set, clear, propagation, userns;
};

enum { PROGRAMS = 200, DIRECTORY = 201, LAST = 205 };

int seclude_directories(bool all)
{
	for (int fd = PROGRAMS; fd <= LAST; fd++) {
		struct attributes attributes = { .set = ATTR_RDONLY };
		struct stat status;
		int tree, directory;

		if (fstat(fd, &status) || !S_ISDIR(status.st_mode) || (fd == DIRECTORY && !all))
			continue;
		tree = (int)syscall(SYS_open_tree, fd, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH);
		/* What all containers of the node are restored with is for reading. Linux before 5.12 does not know how. */
		if (tree >= 0 && fd == PROGRAMS &&
		    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) && errno != ENOSYS)
			return fail("descriptor %d: %s", fd, strerror(errno));
		directory = tree < 0 ? -1 : openat(tree, ".", O_RDONLY | O_DIRECTORY);
		if (directory < 0 || dup2(directory, fd) < 0)
			return fail("descriptor %d: %s", fd, strerror(errno));
		close(directory);
		close(tree);
	}
	return 0;
}
