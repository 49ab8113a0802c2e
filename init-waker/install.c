#include "install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "usage.h"

static int copy(int from, int to)
{
	char buffer[16384];
	ssize_t n, written;

	while ((n = read(from, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < n; at += written)
			if ((written = write(to, buffer + at, (size_t)(n - at))) < 0)
				return -1;
	return n < 0 ? -1 : 0;
}

/* Opens a new file beside the target, with a random name: in containers every process is pid 1. */
static int open_beside(int directory, const char *name, char *temporary, size_t size)
{
	uint64_t salt;

	if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
		return -1;
	snprintf(temporary, size, ".%s-%016llx", name, (unsigned long long)salt);
	return openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
}

static int install_in(int directory, int self, const char *name)
{
	char temporary[64];
	int file = open_beside(directory, name, temporary, sizeof temporary);
	int error;

	if (file < 0)
		return -1;
	/* fchmod, because the umask must not change the mode: the app may run as another user. */
	if (copy(self, file) == 0 && fchmod(file, 0555) == 0 && fsync(file) == 0 &&
	    renameat(directory, temporary, directory, name) == 0)
		return close(file);
	error = errno;
	close(file);
	unlinkat(directory, temporary, 0);
	errno = error;
	return -1;
}

int install_self(const char *path, const char *name)
{
	int result = -1, error;
	bool made = mkdir(path, 0700) == 0;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* An existing directory keeps its mode, because it may belong to another owner. */
	if (self >= 0 && directory >= 0 && (!made || fchmod(directory, 0777) == 0))
		result = install_in(directory, self, name);
	error = errno;
	if (self >= 0)
		close(self);
	if (directory >= 0)
		close(directory);
	errno = error;
	return result;
}

int install_main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, EXIT_USAGE);
	for (int i = 1; i < argc; i++)
		if (argv[i][0] == '-')
			return usage(stderr, EXIT_USAGE);
	for (int i = 1; i < argc; i++)
		if (install_self(argv[i], INSTALLED_NAME) != 0) {
			log_failure("cannot install", errno);
			return EXIT_FAILED;
		}
	return 0;
}
