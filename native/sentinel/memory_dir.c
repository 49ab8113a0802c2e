#include "memory_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum {
	TMPFS_MAGIC = 0x01021994,
	FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC,
	PROGRAM_FLAGS = MS_NOSUID | MS_NODEV,
	OPTIONS_BYTES = 128,
};

/* True if `path` is the root of a tmpfs. */
static bool is_mounted(const char *path)
{
	char parent[4096];
	struct stat here, above;
	struct statfs fs;

	return (size_t)snprintf(parent, sizeof parent, "%s/..", path) < sizeof parent && stat(path, &here) == 0 &&
	       stat(parent, &above) == 0 && here.st_dev != above.st_dev && statfs(path, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC;
}

static bool remount(const char *path, const char *options)
{
	return mount(MOUNT_SOURCE, path, "tmpfs", FLAGS | MS_REMOUNT, options) == 0;
}

/* Pod memory must not reach a disk, and a failover must not wait for one. Kernels before 6.4 do not know `noswap`. */
static bool mount_new(const char *path, unsigned long flags, char options[OPTIONS_BYTES])
{
	strcat(options, ",noswap");
	if (mount(MOUNT_SOURCE, path, "tmpfs", flags, options) == 0)
		return true;
	*strrchr(options, ',') = '\0';
	return errno == EINVAL && mount(MOUNT_SOURCE, path, "tmpfs", flags, options) == 0;
}

static void format_options(char *options, int64_t bytes)
{
	snprintf(options, OPTIONS_BYTES, "size=%lld,mode=0700", (long long)bytes);
}

bool memory_dir_resize(const char *path, int64_t bytes)
{
	char options[OPTIONS_BYTES];

	format_options(options, bytes);
	return is_mounted(path) && remount(path, options);
}

bool memory_dir_mount(const char *path, int64_t bytes)
{
	char options[OPTIONS_BYTES];

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	format_options(options, bytes);
	return is_mounted(path) ? remount(path, options) : mount_new(path, FLAGS, options);
}

bool program_dir_mount(const char *path)
{
	/* Room for the programs of a few versions. */
	char options[OPTIONS_BYTES] = "size=128m,mode=0755";

	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return false;
	return is_mounted(path) || mount_new(path, PROGRAM_FLAGS, options);
}
