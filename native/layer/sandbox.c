/*
 * A volume is not the root of anything: an archive could lead out of it through its own symbolic links. So it becomes
 * the only thing in a root directory that nobody else sees.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layer.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
/* Of <linux/mount.h>, which libcs have only since lately. */
enum { TREE_CLONE = 1, TREE_CLOEXEC = O_CLOEXEC, MOVE_F_EMPTY_PATH = 4 };

static int take(int directory, const char *path)
{
	return (int)syscall(SYS_open_tree, directory, path, TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH);
}

static int put(int tree, const char *path)
{
	if (mkdir(path, 0755) || syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_F_EMPTY_PATH))
		return fail("sandbox: %s: %s", path, strerror(errno));
	close(tree);
	return 0;
}

int enter_sandbox(void)
{
	/* Before the copy: mounts of another namespace than ours are not to be had. */
	int directory = take(FD_DIRECTORY, ""), proc = take(AT_FDCWD, "/proc");

	if (directory < 0)
		return fail("directory, descriptor %d: %s", FD_DIRECTORY, strerror(errno));
	if (proc < 0)
		return fail("/proc: %s", strerror(errno));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return fail("sandbox: %s", strerror(errno));
	/* On /proc because every root directory has one. */
	if (mount("sandbox", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") || chdir("/proc"))
		return fail("sandbox: %s", strerror(errno));
	if (put(directory, "directory") || put(proc, "proc"))
		return EXIT_OWN;
	if (chroot(".") || chdir("/"))
		return fail("sandbox: %s", strerror(errno));
	return 0;
}
