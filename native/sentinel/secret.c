#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* The only secret of the process, followed by a newline and a NUL. */
static char secret[SECRET_LENGTH + 2];

static bool path_of(const char *socket, const char *suffix, char *path, size_t size)
{
	if ((size_t)snprintf(path, size, "%s.secret%s", socket, suffix) < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool secret_open(const char *socket)
{
	unsigned char bytes[SECRET_LENGTH / 2];
	char path[4096], scratch[4096];
	int fd;
	bool written;

	if (!path_of(socket, "", path, sizeof path) || !path_of(socket, ".new", scratch, sizeof scratch))
		return false;
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return false;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	secret[SECRET_LENGTH] = '\n';
	/* Only the process that holds the instance lock runs this, so an existing file belongs to a killed sentinel. */
	unlink(scratch);
	fd = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	written = write(fd, secret, SECRET_LENGTH + 1) == SECRET_LENGTH + 1;
	close(fd);
	/* The rename makes the file appear complete or not at all. */
	return written && rename(scratch, path) == 0;
}

bool secret_is(const char *text, size_t length)
{
	unsigned char different = 0;

	if (length != SECRET_LENGTH)
		return false;
	for (size_t i = 0; i < SECRET_LENGTH; i++)
		different |= (unsigned char)(text[i] ^ secret[i]);
	return different == 0;
}

void secret_close(const char *socket)
{
	char path[4096];

	if (path_of(socket, "", path, sizeof path))
		unlink(path);
}
