#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rootfs.h"

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
