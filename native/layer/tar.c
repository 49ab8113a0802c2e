#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layer.h"

enum { ARGUMENTS = 32 };

static const char tools[] = "/proc/self/fd/200/criu";

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

static struct command tar(void)
{
	static const char *const common[] = {
		"--numeric-owner", "--acls", "--xattrs", "--xattrs-include=*",
		/* Labels belong to where files are. */
		"--xattrs-exclude=security.selinux", "--xattrs-exclude=trusted.overlay.*",
		/* Archive names are never those of another machine, or a compressor. */
		"--force-local", "--file=/proc/self/fd/202",
	};
	struct command command = { 0 };

	say(&command, tools, "/ld.so");
	say(&command, "--library-path", "");
	say(&command, tools, "/lib");
	say(&command, tools, "/tar");
	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		say(&command, common[i], "");
	return command;
}

static int start(const struct command *command)
{
	execv(command->words[0], command->words);
	return fail("%s: %s", command->words[0], strerror(errno));
}

/* In a file of its own: names may be more than a command line holds. */
static int write_names(const struct list *list, char *path, size_t size)
{
	int fd = memfd_create("names", 0), copy = dup(fd);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

	if (!file)
		return fail("names: %s", strerror(errno));
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind != KIND_WHITEOUT)
			fprintf(file, "%s%c", list->items[i].path, 0);
	if (fclose(file) || lseek(fd, 0, SEEK_SET))
		return fail("names: %s", strerror(errno));
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return 0;
}

int tar_create(const struct list *list)
{
	struct command command = tar();
	char names[40];

	if (write_names(list, names, sizeof names))
		return EXIT_OWN;
	say(&command, "--create", "");
	say(&command, "--format=posix", "");
	/* Names only by us, sorted; times at which files were read say nothing. */
	say(&command, "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", "");
	say(&command, "--sparse", "");
	say(&command, "--directory=/proc/self/fd/201", "");
	say(&command, "--no-recursion", "");
	say(&command, "--null", "");
	say(&command, "--verbatim-files-from", "");
	say(&command, "--files-from=", names);
	return start(&command);
}

int tar_extract(const char *root, const struct paths *excluded)
{
	struct command command = tar();

	say(&command, "--extract", "");
	say(&command, "--preserve-permissions", "");
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
