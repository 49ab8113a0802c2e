/* Nothing here follows a symbolic link, whatever the directory or the lists contain. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootfs.h"

int open_parent_of(int root, const char *path, const char **name)
{
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0);

	for (*name = path; at >= 0;) {
		size_t length = strcspn(*name, "/");
		char part[NAME_MAX + 1];
		int next;

		if (!(*name)[length])
			return at;
		if (length > NAME_MAX) {
			close(at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, *name, length);
		part[length] = 0;
		next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		*name += length + 1;
	}
	return -1;
}

static const struct paths nothing;

static int keep_only(const struct clear *clear, const struct paths *wanted, int directory, const char *path);

/* Removes a file or a directory with its contents. Mount points and the directories above them stay. */
static int take_away(const struct clear *clear, int parent, const char *name, const char *path)
{
	int directory, code;

	if (paths_have(clear->kept, path) || unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno == EBUSY ? 0 : fail("remove %s: %s", path, strerror(errno));
	directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return fail("remove %s: %s", path, strerror(errno));
	code = keep_only(clear, &nothing, directory, path);
	if (!code && unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOTEMPTY && errno != EBUSY && errno != ENOENT)
		code = fail("remove %s: %s", path, strerror(errno));
	return code;
}

/* Removes everything from a directory but the wanted and the kept paths. Takes ownership of the descriptor. */
static int keep_only(const struct clear *clear, const struct paths *wanted, int directory, const char *path)
{
	DIR *stream = is_too_deep(path) ? NULL : fdopendir(directory);
	struct dirent *entry;
	int code = 0;

	if (!stream) {
		close(directory);
		return fail("%.100s: cannot be read", path);
	}
	for (errno = 0; !code && (entry = readdir(stream)); errno = 0) {
		char *below;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		below = join_path(path, entry->d_name);
		if (!paths_have(wanted, below)) {
			code = take_away(clear, dirfd(stream), entry->d_name, below);
		} else if (!paths_have(clear->kept, below)) {
			int next = openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (next >= 0)
				code = keep_only(clear, wanted, next, below);
			else if (errno != ENOTDIR && errno != ELOOP)
				code = fail("%s: %s", below, strerror(errno));
		}
		free(below);
	}
	if (!code && errno)
		code = fail("%s: %s", path, strerror(errno));
	closedir(stream);
	return code;
}

bool is_kept(const struct clear *clear, const char *path)
{
	char *copy = join_path("", path);
	bool kept = paths_have(clear->kept, copy);

	for (char *slash = copy; !kept && (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		kept = paths_have(clear->kept, copy);
		*slash = '/';
	}
	free(copy);
	return kept;
}

/* Removes a file that the archive's member would not replace by itself. */
static int make_way(const struct clear *clear, const struct item *item)
{
	struct stat status;
	const char *name;
	int parent, code = 0;

	if (is_kept(clear, item->path))
		return 0;
	parent = open_parent_of(clear->root, item->path, &name);
	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : fail("%s: %s", item->path, strerror(errno));
	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW)) {
		code = errno == ENOENT ? 0 : fail("%s: %s", item->path, strerror(errno));
	} else if (item->kind == KIND_WHITEOUT || !S_ISDIR(status.st_mode) != (item->kind == KIND_OTHER)) {
		code = take_away(clear, parent, name, item->path);
	} else if (item->kind == KIND_OPAQUE) {
		int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		code = directory < 0 ? fail("%s: %s", item->path, strerror(errno)) : keep_only(clear, &nothing, directory, item->path);
	}
	close(parent);
	return code;
}

static struct paths paths_of(const struct list *list)
{
	struct paths paths = { 0 };

	for (size_t i = 0; i < list->count; i++)
		paths_add(&paths, list->items[i].path);
	paths_sort(&paths);
	return paths;
}

static int remove_path(const struct clear *clear, const char *path)
{
	const char *name;
	int parent = open_parent_of(clear->root, path, &name), code;

	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : fail("%s: %s", path, strerror(errno));
	code = take_away(clear, parent, name, path);
	close(parent);
	return code;
}

/* Removes changes of an earlier memory from the layer. Backwards: a directory precedes its contents in the list. */
static int forget(const struct clear *clear, const struct paths *wanted, const struct list *present)
{
	for (size_t i = present->count; i-- > 0;) {
		const struct item *item = &present->items[i];
		bool directory = item->kind == KIND_DIRECTORY || item->kind == KIND_OPAQUE;
		int code;

		if (is_kept(clear, item->path) || paths_have(wanted, item->path))
			continue;
		/* A directory of the image that is in the layer only because of its contents. */
		if (directory && item->in_image)
			continue;
		if (item->in_image || item->kind == KIND_WHITEOUT) {
			fail("%s: changed by an earlier memory, and the image's own is not to be had any more", item->path);
			return EXIT_IRREVERSIBLE;
		}
		code = remove_path(clear, item->path);
		if (code)
			return code;
	}
	return 0;
}

int clear_for(const struct clear *clear, const struct list *wanted, const struct list *present)
{
	struct paths paths = paths_of(wanted);
	int code = forget(clear, &paths, present);

	for (size_t i = 0; i < wanted->count && !code; i++)
		code = make_way(clear, &wanted->items[i]);
	return code;
}

int clear_all_but(const struct clear *clear, const struct list *wanted)
{
	struct paths paths = paths_of(wanted);
	int root = openat(clear->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = root < 0 ? fail("directory: %s", strerror(errno)) : keep_only(clear, &paths, root, "");

	for (size_t i = 0; i < wanted->count && !code; i++)
		code = make_way(clear, &wanted->items[i]);
	return code;
}
