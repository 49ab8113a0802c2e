#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rootfs.h"

enum { ARGUMENTS = 32, FIRST_OPEN = 3 };

/*
 * The archive is standard input or output, and the working directory leads to tar: no other way leads out of the
 * sandbox, and tar resolves no name of an archive from there.
 */
static const char root[] = "/directory";

struct command {
	char **words;
	size_t count, space;
};

static void say(struct command *command, const char *first, const char *second)
{
	char *word = allocate(strlen(first) + strlen(second) + 1);

	strcpy(stpcpy(word, first), second);
	if (command->count + 1 >= command->space) {
		command->space = command->space ? 2 * command->space : ARGUMENTS;
		command->words = realloc(command->words, command->space * sizeof *command->words);
		if (!command->words)
			exit(fail("out of memory"));
	}
	command->words[command->count++] = word;
	command->words[command->count] = NULL;
}

static struct command tar(bool with_capabilities)
{
	static const char *const common[] = {
		/*
		 * SELinux labels belong to a location, and attributes that only the node's root could write are not the
		 * container's.
		 */
		"--numeric-owner", "--acls", "--xattrs", "--xattrs-include=user.*",
		/* Never interpret the archive's name as another machine's, and never run a compressor. */
		"--force-local", "--file=-",
	};
	struct command command = { 0 };

	say(&command, "ld.so", "");
	say(&command, "--inhibit-cache", "");
	say(&command, "--library-path", "");
	say(&command, "lib", "");
	say(&command, "./tar", "");
	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		say(&command, common[i], "");
	if (with_capabilities)
		say(&command, "--xattrs-include=security.capability", "");
	return command;
}

static int start(const struct command *command)
{
	int tools = openat(FD_PROGRAMS, "criu", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int loader = tools < 0 ? -1 : openat(tools, "ld.so", O_RDONLY | O_CLOEXEC);

	if (loader < 0 || fchdir(tools))
		return fail("tar: %s", strerror(errno));
	/* Besides the archive tar gets no descriptor that leads out of the sandbox. */
	loader = fcntl(loader, F_DUPFD_CLOEXEC, FIRST_OPEN + 1);
	if (loader < 0 || dup3(loader, FIRST_OPEN, O_CLOEXEC) < 0 || syscall(SYS_close_range, FIRST_OPEN + 1, ~0U, 0))
		return fail("tar: %s", strerror(errno));
	syscall(SYS_execveat, FIRST_OPEN, "", command->words, environ, AT_EMPTY_PATH);
	return fail("tar: %s", strerror(errno));
}

int tar_names(const struct list *list, int fd)
{
	int copy = dup(fd);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

	if (!file)
		return fail("names: %s", strerror(errno));
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind != KIND_WHITEOUT)
			fprintf(file, "%s%c", list->items[i].path, 0);
	return fclose(file) ? fail("names: %s", strerror(errno)) : 0;
}

int tar_create(int names)
{
	struct command command = tar(true);

	if (dup2(names, STDIN_FILENO) < 0)
		return fail("names: %s", strerror(errno));
	if (dup2(FD_ARCHIVE, STDOUT_FILENO) < 0)
		return fail("archive, descriptor %d: %s", FD_ARCHIVE, strerror(errno));
	say(&command, "--create", "");
	say(&command, "--format=posix", "");
	/* Only our sorted names; access and change times carry no information. */
	say(&command, "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", "");
	say(&command, "--sparse", "");
	say(&command, "--directory=", root);
	say(&command, "--no-recursion", "");
	say(&command, "--null", "");
	say(&command, "--verbatim-files-from", "");
	say(&command, "--files-from=-", "");
	return start(&command);
}

int tar_extract(const struct paths *excluded, const struct may *may)
{
	struct command command = tar(may->capabilities);

	if (dup2(FD_ARCHIVE, STDIN_FILENO) < 0)
		return fail("archive, descriptor %d: %s", FD_ARCHIVE, strerror(errno));
	say(&command, "--extract", "");
	/* Without set-id and sticky bits, see bring.c; the umask is 0, so all other bits are kept. */
	say(&command, may_all(may) ? "--preserve-permissions" : "--no-same-permissions", "");
	say(&command, "--same-owner", "");
	/* Clocks of nodes differ. */
	say(&command, "--warning=no-timestamp", "");
	say(&command, "--anchored", "");
	say(&command, "--no-wildcards", "");
	for (size_t i = 0; i < excluded->count; i++)
		say(&command, "--exclude=", excluded->items[i]);
	say(&command, "--directory=", root);
	return start(&command);
}
