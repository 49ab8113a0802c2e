#include "remove.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "cgroup_join.h"
#include "memory_dir.h"

enum { DEPTH = 16, PATH_BYTES = 4096 };

/* Finds our latest mount below `directory`: mountinfo lists mounts in the order they were made, upper ones last. */
static bool last_mount(const char *directory, char path[PATH_BYTES])
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	size_t length = strlen(directory), room = 0;
	char *line = NULL;
	bool found = false;

	if (!mounts)
		return false;
	while (getline(&line, &room, mounts) > 0) {
		char point[PATH_BYTES];
		const char *type = strstr(line, " - tmpfs " MOUNT_SOURCE " ");

		if (type && sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1 &&
		    strncmp(point, directory, length) == 0 && point[length] == '/') {
			snprintf(path, PATH_BYTES, "%s", point);
			found = true;
		}
	}
	free(line);
	fclose(mounts);
	return found;
}

static int remove_entry(const char *path, const struct stat *entry, int type, struct FTW *place)
{
	(void)entry;
	(void)type;
	(void)place;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static bool remove_directory(const char *directory, char *what, size_t size)
{
	char path[PATH_BYTES];

	while (last_mount(directory, path)) {
		snprintf(what, size, "%s", path);
		/* A process with an open file there keeps that file; no path leads to it any more. */
		if (umount2(path, MNT_DETACH) != 0)
			return false;
	}
	snprintf(what, size, "%s", directory);
	return nftw(directory, remove_entry, DEPTH, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT;
}

bool remove_all(char *const *directories, const char *cgroup, char *what, size_t size)
{
	for (; *directories; directories++)
		if (!remove_directory(*directories, what, size))
			return false;
	return !cgroup || cgroup_remove(cgroup, what, size);
}
