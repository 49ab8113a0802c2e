#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer.h"

int fail(const char *format, ...)
{
	char line[1024];
	va_list values;

	va_start(values, format);
	int length = vsnprintf(line, sizeof line, format, values);
	va_end(values);
	/* One write, because other processes share this standard error. */
	fprintf(stderr, "layer: %s%s\n", line, length < (int)sizeof line ? "" : "...");
	return EXIT_OWN;
}

void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		_exit(fail("out of memory"));
	return memory;
}

char *join_path(const char *directory, const char *name)
{
	size_t first = strlen(directory), second = strlen(name);
	char *path = allocate(first + second + 2);

	memcpy(path, directory, first);
	if (first)
		path[first++] = '/';
	memcpy(path + first, name, second + 1);
	return path;
}
