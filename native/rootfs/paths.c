#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rootfs.h"

enum { DEEPEST = 512 };

bool is_too_deep(const char *path)
{
	int depth = 0;

	for (const char *at = path; *at; at++)
		depth += *at == '/';
	if (depth < DEEPEST)
		return false;
	fail("%.100s...: more than %d directories deep", path, DEEPEST);
	return true;
}

void paths_add(struct paths *paths, const char *path)
{
	while (*path == '/')
		path++;
	if (!*path)
		return;
	if (paths->count == paths->space) {
		paths->space = paths->space ? 2 * paths->space : 32;
		paths->items = realloc(paths->items, paths->space * sizeof *paths->items);
		if (!paths->items)
			exit(fail("out of memory"));
	}
	paths->items[paths->count++] = join_path("", path);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void paths_sort(struct paths *paths)
{
	if (paths->count)
		qsort(paths->items, paths->count, sizeof *paths->items, compare);
}

bool paths_have(const struct paths *sorted, const char *path)
{
	return sorted->count && bsearch(&path, sorted->items, sorted->count, sizeof *sorted->items, compare);
}

/* Unescapes in place: the kernel writes spaces, tabs, newlines and backslashes as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
}

int paths_add_mounts(struct paths *paths)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t size = 0;
	char *line = NULL;

	if (!file)
		return fail("/proc/self/mountinfo: %s", strerror(errno));
	while (getline(&line, &size, file) > 0) {
		char *rest, *point = strtok_r(line, " ", &rest);

		for (int i = 0; i < 4 && point; i++)
			point = strtok_r(NULL, " ", &rest);
		if (!point)
			return fail("/proc/self/mountinfo: not understood");
		unescape(point);
		paths_add(paths, point);
	}
	if (ferror(file))
		return fail("/proc/self/mountinfo: %s", strerror(errno));
	fclose(file);
	return 0;
}
