#include "process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool process_read(pid_t pid, const char *file, char *text, size_t size)
{
	char path[32];
	int fd;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

bool process_stat(pid_t pid, struct process_stat *stat)
{
	char text[1024], *at, *end;

	if (!process_read(pid, "stat", text, sizeof text))
		return false;
	/* The name is in parentheses and may contain anything, parentheses and newlines too. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return false;
	stat->state = at[2];
	at += 3;
	for (int field = 4; field <= 22; field++, at = end) {
		unsigned long long value = strtoull(at, &end, 10);

		if (end == at)
			return false;
		if (field == 4)
			stat->parent = (pid_t)value;
		else if (field == 6)
			stat->session = (pid_t)value;
		else if (field == 9)
			stat->flags = (unsigned)value;
		else if (field == 22)
			stat->start = value;
	}
	return true;
}
