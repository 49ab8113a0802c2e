/*
 * The environment of tar: a root directory that has only the files in question, as /directory. Names in archives and
 * links in directories come from an application or another node, tar follows links on its way to a file, and
 * directories change while it reads them. Here they lead nowhere: no other file is below this root, and there is no
 * /proc, whose links (root, cwd, fd/200/..) lead out of any root. This has the effect of openat2 with RESOLVE_IN_ROOT
 * and RESOLVE_NO_MAGICLINKS, for a program that does not use it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rootfs.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
/* From <linux/mount.h>, which only recent C libraries have. */
enum { TREE_CLONE = 1, TREE_CLOEXEC = O_CLOEXEC, MOVE_F_EMPTY_PATH = 4 };

int enter_sandbox(int directory, bool writable)
{
	/* A device that replaces a file cannot be opened. Only a directory for unpacking is writable. */
	const unsigned long flags = MS_REMOUNT | MS_BIND | MS_NODEV | MS_NOSUID | MS_NOEXEC | (writable ? 0 : MS_RDONLY);
	/* Without its mounts. Before the unshare: mounts of another namespace cannot be copied. */
	int tree = (int)syscall(SYS_open_tree, directory, "", TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0)
		return fail("directory, descriptor %d: %s", directory, strerror(errno));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return fail("sandbox: %s", strerror(errno));
	/* On /proc, because every root directory has one. */
	if (mount("sandbox", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") || chdir("/proc"))
		return fail("sandbox: %s", strerror(errno));
	if (mkdir("directory", 0755) || syscall(SYS_move_mount, tree, "", AT_FDCWD, "directory", MOVE_F_EMPTY_PATH))
		return fail("sandbox: directory: %s", strerror(errno));
	if (mount(NULL, "directory", NULL, flags, NULL) || mount(NULL, ".", NULL, MS_REMOUNT | MS_RDONLY, NULL))
		return fail("sandbox: %s", strerror(errno));
	if (chroot(".") || chdir("/"))
		return fail("sandbox: %s", strerror(errno));
	close(tree);
	return 0;
}
