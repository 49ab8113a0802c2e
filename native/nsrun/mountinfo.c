#include "mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "nsrun.h"

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

static unsigned long flags_of(char *options)
{
	static const struct {
		const char *word;
		unsigned long flag;
	} known[] = {
		{ "ro", MS_RDONLY }, { "nosuid", MS_NOSUID }, { "nodev", MS_NODEV }, { "noexec", MS_NOEXEC },
		{ "noatime", MS_NOATIME }, { "nodiratime", MS_NODIRATIME }, { "relatime", MS_RELATIME },
	};
	unsigned long flags = 0;
	char *rest;

	for (char *word = strtok_r(options, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (strcmp(word, known[i].word) == 0)
				flags |= known[i].flag;
	return flags;
}

/* Parses "36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 - ext3 /dev/root rw,errors=continue"; zero for another format. */
static int parse(char *line, struct mount_line *mount)
{
	char *words[6], *rest, *separator = strstr(line, " - ");

	if (!separator)
		return 0;
	*separator = 0;
	for (int i = 0; i < 6; i++) {
		words[i] = strtok_r(i == 0 ? line : NULL, " ", &rest);
		if (!words[i])
			return 0;
	}
	mount->id = atoi(words[0]);
	mount->parent = atoi(words[1]);
	mount->root = words[3];
	mount->point = words[4];
	unescape(mount->root);
	unescape(mount->point);
	mount->flags = flags_of(words[5]);
	mount->type = strtok_r(separator + 3, " ", &rest);
	/* The source between them may be empty, and strtok would skip it. */
	mount->options = mount->type && *rest ? strrchr(rest, ' ') : NULL;
	if (!mount->options)
		return 0;
	mount->options++;
	return 1;
}

int read_mounts(struct mount_table *table)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	int space = 0;

	*table = (struct mount_table){ 0 };
	if (!file)
		return fail("/proc/self/mountinfo: %s", strerror(errno));
	for (;;) {
		char *line = NULL;
		size_t size = 0;
		ssize_t length;

		errno = 0;
		length = getline(&line, &size, file);
		if (length < 0) {
			if (errno)
				return fail("/proc/self/mountinfo: %s", strerror(errno));
			break;
		}
		if (length > 0 && line[length - 1] == '\n')
			line[length - 1] = 0;
		if (table->count == space) {
			space = space ? 2 * space : 64;
			table->lines = realloc(table->lines, (size_t)space * sizeof *table->lines);
			if (!table->lines)
				return fail("out of memory");
		}
		if (!parse(line, &table->lines[table->count]))
			return fail("/proc/self/mountinfo: not understood: %s", line);
		table->count++;
	}
	fclose(file);
	return 0;
}
