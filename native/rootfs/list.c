#include <dirent.h>
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

static void add(struct list *list, enum kind kind, bool in_image, const char *path)
{
	if (list->count == list->space) {
		list->space = list->space ? 2 * list->space : 256;
		list->items = realloc(list->items, list->space * sizeof *list->items);
		if (!list->items)
			exit(fail("out of memory"));
	}
	list->items[list->count++] = (struct item){ .kind = kind, .in_image = in_image, .path = join_path("", path) };
}

/* Returns the first byte of the attribute, 0 for an empty one, or -1 if it does not exist. */
static int overlay_attribute(const char *file, const char *name)
{
	char value[256] = { 0 }, full[64];

	snprintf(full, sizeof full, "trusted.overlay.%s", name);
	/* ERANGE: the attribute exists and exceeds the buffer. */
	return lgetxattr(file, full, value, sizeof value) >= 0 || errno == ERANGE ? (unsigned char)value[0] : -1;
}

static int open_parent(const char *path, int parent, const char *name, dev_t device, DIR **stream)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	*stream = NULL;
	if (fd < 0 || fstat(fd, &status))
		return fail("%s: %s", path, strerror(errno));
	/* Another file system is mounted there. */
	if (device && status.st_dev != device) {
		close(fd);
		return 0;
	}
	*stream = fdopendir(fd);
	return *stream ? 0 : fail("%s: %s", path, strerror(errno));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that a directory gives the same archive whatever its order on disk. */
static int names_of(DIR *stream, const char *path, struct paths *names)
{
	struct dirent *entry;

	for (errno = 0; (entry = readdir(stream)); errno = 0)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			paths_add(names, entry->d_name);
	if (errno)
		return fail("%s: %s", path, strerror(errno));
	if (names->count)
		qsort(names->items, names->count, sizeof *names->items, by_name);
	return 0;
}

static int visit_directory(struct walk *walk, const char *path, int parent, const char *name, dev_t device);

static int visit(struct walk *walk, const char *path, int parent, const char *name, dev_t device)
{
	struct stat status;
	char file[NAME_MAX + 40];
	bool in_image;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
		return fail("%s: %s", path, strerror(errno));
	if (S_ISSOCK(status.st_mode))
		return 0;
	snprintf(file, sizeof file, "/proc/self/fd/%d/%s", parent, name);
	if (walk->layer) {
		if (overlay_attribute(file, "redirect") >= 0 || overlay_attribute(file, "metacopy") >= 0)
			return fail("%s: only a reference to a file of the image: overlays with redirect_dir or metacopy are "
				    "not supported", path);
		if ((S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0)) ||
		    (S_ISREG(status.st_mode) && overlay_attribute(file, "whiteout") >= 0)) {
			add(&walk->list, KIND_WHITEOUT, false, path);
			return 0;
		}
	}
	in_image = walk->image && image_has(walk->image, path);
	if (!S_ISDIR(status.st_mode)) {
		add(&walk->list, KIND_OTHER, in_image, path);
		return 0;
	}
	if (status.st_dev != device)
		return 0;
	add(&walk->list, walk->layer && overlay_attribute(file, "opaque") == 'y' ? KIND_OPAQUE : KIND_DIRECTORY,
	    in_image, path);
	return visit_directory(walk, path, parent, name, device);
}

static int visit_directory(struct walk *walk, const char *path, int parent, const char *name, dev_t device)
{
	struct paths names = { 0 };
	DIR *stream;
	int code;

	if (is_too_deep(path))
		return EXIT_OWN;
	code = open_parent(path, parent, name, device, &stream);

	if (code || !stream)
		return code;
	code = names_of(stream, path, &names);
	for (size_t i = 0; i < names.count && !code; i++) {
		char *below = join_path(path, names.items[i]);

		if (!paths_have(walk->excluded, below))
			code = visit(walk, below, dirfd(stream), names.items[i], device);
		free(below);
	}
	closedir(stream);
	return code;
}

int list_directory(struct walk *walk)
{
	struct stat status;

	if (fstat(FD_DIRECTORY, &status))
		return fail("directory, descriptor %d: %s", FD_DIRECTORY, strerror(errno));
	return visit_directory(walk, "", FD_DIRECTORY, ".", status.st_dev);
}

int list_write(const struct list *list, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

	if (!file)
		return fail("list, descriptor %d: %s", fd, strerror(errno));
	for (size_t i = 0; i < list->count; i++) {
		const struct item *item = &list->items[i];

		fprintf(file, "%c%c %s%c", item->kind, item->in_image ? 'i' : '-', item->path, 0);
	}
	return fclose(file) ? fail("list: %s", strerror(errno)) : 0;
}

/* True for a relative path of plain names. */
static bool is_plain(const char *path)
{
	if (*path == '/' || !*path)
		return false;
	for (;;) {
		size_t length = strcspn(path, "/");

		if (length == 0 || (length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[length])
			return true;
		path += length + 1;
	}
}

int list_read(struct list *list, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	/* From the start, because another process may have read it: an empty list would remove everything. */
	if (!file || fseek(file, 0, SEEK_SET))
		return fail("list, descriptor %d: %s", fd, strerror(errno));
	while ((length = getdelim(&line, &size, 0, file)) > 0) {
		bool known = length > 4 && strchr("dofw", line[0]) && strchr("i-", line[1]) && line[2] == ' ';

		/* Lists come from other nodes. */
		if (!known || line[length - 1] || !is_plain(line + 3))
			return fail("list: not understood: %.100s", line);
		add(list, (enum kind)line[0], line[1] == 'i', line + 3);
	}
	if (ferror(file))
		return fail("list: %s", strerror(errno));
	fclose(file);
	free(line);
	return 0;
}
