/*
 * Detaches the node's directories that a program works with in a container. CRIU opens the paths in images, as root and
 * inside the container, and images come from other nodes: /proc/PID/fd/200/../../etc is a path, too. A copy of the
 * mount whose root is the directory, mounted nowhere, has nothing above it.
 */
#include "nsrun.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
/* From <linux/mount.h>, which only recent C libraries have. */
enum { TREE_CLONE = 1, ATTR_RDONLY = 1 };

struct attributes {
	unsigned long long set, clear, propagation, userns;
};

int seclude_directories(bool all)
{
	for (int fd = FD_PROGRAMS; fd <= FD_LAST; fd++) {
		struct attributes attributes = { .set = ATTR_RDONLY };
		struct stat status;
		int tree, directory;

		if (fstat(fd, &status) || !S_ISDIR(status.st_mode) || (fd == FD_DIRECTORY && !all))
			continue;
		tree = (int)syscall(SYS_open_tree, fd, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH);
		/*
		 * All containers of the node share these programs, so they are read-only. Linux before 5.12 does not
		 * support that.
		 */
		if (tree >= 0 && fd == FD_PROGRAMS &&
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
