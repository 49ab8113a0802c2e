/*
 * xattr get NAME FILE | xattr set NAME FILE VALUE: reads and writes extended attributes, for which neither Node nor
 * every machine has a tool.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

int main(int count, char **arguments)
{
	char value[256] = { 0 };

	if (count == 5 && strcmp(arguments[1], "set") == 0 &&
	    lsetxattr(arguments[3], arguments[2], arguments[4], strlen(arguments[4]), 0) == 0)
		return 0;
	if (count == 4 && strcmp(arguments[1], "get") == 0 &&
	    lgetxattr(arguments[3], arguments[2], value, sizeof value - 1) >= 0)
		return puts(value) < 0;
	perror("xattr");
	return 1;
}
