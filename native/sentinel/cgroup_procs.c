#include "cgroup_procs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

enum { DEPTH_MAX = 32 };

bool cgroup_path_is_inside(const char *path)
{
	if (!*path || *path == '/')
		return false;
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 0 || (length == 2 && memcmp(path, "..", 2) == 0))
			return false;
		path += length;
		path += *path == '/';
	}
	return true;
}

static bool each_here(int directory, bool (*meet)(void *context, pid_t pid), void *context)
{
	char text[4096];
	int fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	pid_t pid = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	/* A read may end inside a number. The kernel lists a process that is invisible from this pid namespace as 0. */
	while ((n = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (isdigit((unsigned char)text[i])) {
				pid = pid * 10 + (text[i] - '0');
			} else {
				if (pid && !meet(context, pid)) {
					int error = errno;

					close(fd);
					errno = error;
					return false;
				}
				pid = 0;
			}
	int error = n < 0 ? errno : 0;

	close(fd);
	errno = error;
	return error == 0;
}

/* Takes ownership of `directory`. */
static bool each_below(int directory, int depth, bool (*meet)(void *context, pid_t pid), void *context)
{
	DIR *entries = fdopendir(directory);
	struct dirent *entry;
	bool all;

	if (!entries) {
		close(directory);
		return false;
	}
	all = each_here(directory, meet, context);
	while (all && depth < DEPTH_MAX && (entry = readdir(entries))) {
		int child;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		child = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* A cgroup that is removed meanwhile had no processes. */
		if (child >= 0)
			all = each_below(child, depth + 1, meet, context) || errno == ENODEV || errno == ENOENT;
	}
	int error = errno;

	closedir(entries);
	errno = error;
	return all;
}

bool cgroup_any(char *const *paths)
{
	int root = open(CGROUP_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool any = false;

	for (; root >= 0 && *paths && !any; paths++)
		any = faccessat(root, *paths, F_OK, 0) == 0;
	if (root >= 0)
		close(root);
	return any;
}

bool cgroup_each(const char *path, bool (*meet)(void *context, pid_t pid), void *context)
{
	int root = open(CGROUP_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory, error;

	if (root < 0)
		return false;
	directory = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = errno;
	close(root);
	errno = error;
	return directory >= 0 && each_below(directory, 0, meet, context);
}
