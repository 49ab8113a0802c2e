/*
 * Tells whether the image below a writable layer has a path too. If so, removing the path in the container leaves a
 * deletion and does not restore the image's file. Neither the layer nor the container shows that; the directories of the
 * overlay do.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rootfs.h"

static int add_directory(struct image *image, const char *base, const char *path)
{
	char *whole = *path == '/' ? join_path("", path) : join_path(base, path);

	image->directories = realloc(image->directories, (image->count + 1) * sizeof *image->directories);
	if (!image->directories)
		return fail("out of memory");
	image->directories[image->count] = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (image->directories[image->count++] < 0)
		return fail("image: %s: %s", whole, strerror(errno));
	free(whole);
	return 0;
}

/*
 * "lowerdir=TOP:...:BOTTOM", or one "lowerdir+=" each. Relative ones, which containerd uses for images of many layers,
 * are beside the directory of the upper one.
 */
static int add_directories(struct image *image, char *options)
{
	char *rest, *base = NULL, *copy = join_path("", options);

	for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (strncmp(word, "upperdir=", 9) == 0)
			base = word + 9;
	for (int up = 0; base && up < 2; up++)
		if (strrchr(base, '/'))
			*strrchr(base, '/') = 0;
	if (!base)
		return fail("image: an overlay without a writable layer");
	for (char *word = strtok_r(options, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		char *parts = strncmp(word, "lowerdir=", 9) == 0    ? word + 9
			      : strncmp(word, "lowerdir+=", 10) == 0 ? word + 10
								     : NULL;
		char *more;

		for (char *part = parts ? strtok_r(parts, ":", &more) : NULL; part; part = strtok_r(NULL, ":", &more))
			if (add_directory(image, base, part))
				return EXIT_OWN;
	}
	return 0;
}

int image_open(struct image *image, const char *pid)
{
	char *line = NULL, *options = NULL;
	char path[64];
	size_t size = 0;
	FILE *file;

	if (strlen(pid) > 10 || strspn(pid, "0123456789") != strlen(pid))
		return fail("not a pid: %.20s", pid);
	snprintf(path, sizeof path, "/proc/%s/mountinfo", pid);
	file = fopen(path, "re");
	if (!file)
		return fail("%s: %s", path, strerror(errno));
	while (getline(&line, &size, file) > 0) {
		char point[8], *separator = strstr(line, " - overlay ");

		/* The last mount at the point is the visible one. */
		if (!separator || sscanf(line, "%*s %*s %*s %*s %7s", point) != 1 || strcmp(point, "/") != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		free(options);
		options = join_path("", strrchr(line, ' ') + 1);
	}
	fclose(file);
	if (!options)
		return fail("process %s has no overlay as its root", pid);
	return add_directories(image, options);
}

enum answer { ABSENT, PRESENT, HIDDEN };

static bool is_opaque(int parent, const char *name)
{
	char file[NAME_MAX + 40], value;

	snprintf(file, sizeof file, "/proc/self/fd/%d/%s", parent, name);
	return lgetxattr(file, "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
}

/* HIDDEN: this directory hides the path in the directories below it. */
static enum answer ask(int directory, const char *path)
{
	int at = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	enum answer otherwise = ABSENT, answer = ABSENT;

	while (at >= 0) {
		size_t length = strcspn(path, "/");
		char name[NAME_MAX + 1];
		struct stat status;
		int next;

		if (length > NAME_MAX)
			break;
		memcpy(name, path, length);
		name[length] = 0;
		answer = otherwise;
		if (fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW))
			break;
		answer = HIDDEN;
		if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0))
			break;
		if (!path[length]) {
			answer = PRESENT;
			break;
		}
		if (!S_ISDIR(status.st_mode))
			break;
		if (is_opaque(at, name))
			otherwise = HIDDEN;
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += length + 1;
	}
	if (at >= 0)
		close(at);
	return answer;
}

bool image_has(const struct image *image, const char *path)
{
	for (size_t i = 0; i < image->count; i++) {
		enum answer answer = ask(image->directories[i], path);

		if (answer != ABSENT)
			return answer == PRESENT;
	}
	return false;
}
