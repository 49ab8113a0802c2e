#include "order_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

static bool path_of(const char *directory, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", directory, name);

	if (length > 0 && (size_t)length < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static void draw(struct order_key *key, const unsigned char *bytes)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof key->text; i++)
		key->text[i] = digits[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
}

int order_key_keep(struct order_key *key, const char *directory)
{
	unsigned char bytes[ORDER_KEY_LENGTH / 2];
	char path[PATH_MAX], scratch[PATH_MAX];
	bool written;
	int fd;

	if (!path_of(directory, "hold.key", path, sizeof path) ||
	    !path_of(directory, "hold.key.new", scratch, sizeof scratch))
		return -1;
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return -1;
	draw(key, bytes);
	/* Left over from a container start that ended early. */
	unlink(scratch);
	fd = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return -1;
	written = write(fd, key->text, sizeof key->text) == (ssize_t)sizeof key->text;
	close(fd);
	return written && rename(scratch, path) == 0 ? 0 : -1;
}

void order_key_drop(const char *directory)
{
	char path[PATH_MAX];

	if (path_of(directory, "hold.key", path, sizeof path))
		unlink(path);
}

bool order_key_is(const struct order_key *key, const char *text)
{
	unsigned char different = 0;

	if (!text)
		return false;
	for (size_t i = 0; i < sizeof key->text; i++)
		different |= (unsigned char)(key->text[i] ^ text[i]);
	return different == 0;
}
