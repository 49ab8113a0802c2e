/*
 * Reads the rights in an archive: set-id and sticky bits, devices, capabilities of programs. This reader and tar may
 * read a forged archive in two ways; then files lose bits, but never gain any. See bring.c.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rootfs.h"

enum { BLOCK = 512, LONGEST = 1 << 20 };

/* Offsets of the fields of a POSIX header. */
enum { NAME = 0, NAME_SIZE = 100, MODE = 100, SIZE = 124, TYPE = 156, MAGIC = 257, PREFIX = 345, PREFIX_SIZE = 155 };

/* Octal, or GNU's binary format for numbers with more digits. */
static uint64_t number(const unsigned char *field, size_t size)
{
	uint64_t value = 0;

	if (field[0] & 0x80) {
		for (size_t i = 1; i < size; i++)
			value = value << 8 | field[i];
		return value;
	}
	for (size_t i = 0; i < size && field[i]; i++)
		if (field[i] >= '0' && field[i] <= '7')
			value = value << 3 | (uint64_t)(field[i] - '0');
	return value;
}

struct extended {
	char *path;
	uint64_t size;
	bool has_size, has_capabilities;
};

static void forget_extended(struct extended *extended)
{
	free(extended->path);
	*extended = (struct extended){ 0 };
}

/* Each record is "LENGTH KEY=VALUE\n". */
static void read_extended(struct extended *extended, char *text, size_t size)
{
	static const char capabilities[] = "SCHILY.xattr.security.capability=";

	for (size_t at = 0; at < size;) {
		char *rest;
		size_t length = strtoul(text + at, &rest, 10);
		char *key = rest + 1, *end = text + at + length;

		if (length < 4 || length > size - at || *rest != ' ' || key >= end)
			return;
		end[-1] = 0;
		/* A sparse file is archived under another name than its own. */
		if (strncmp(key, "path=", 5) == 0 || strncmp(key, "GNU.sparse.name=", 16) == 0) {
			free(extended->path);
			extended->path = join_path("", strchr(key, '=') + 1);
		} else if (strncmp(key, "size=", 5) == 0) {
			extended->size = strtoull(key + 5, NULL, 10);
			extended->has_size = true;
		} else if ((size_t)(end - key) > sizeof capabilities - 1 &&
			   memcmp(key, capabilities, sizeof capabilities - 1) == 0) {
			extended->has_capabilities = true;
		}
		at += length;
	}
}

static char *path_of(const unsigned char *header, const struct extended *extended)
{
	char name[NAME_SIZE + 1] = { 0 }, prefix[PREFIX_SIZE + 1] = { 0 };
	char *path;

	memcpy(name, header + NAME, NAME_SIZE);
	if (memcmp(header + MAGIC, "ustar", 6) == 0)
		memcpy(prefix, header + PREFIX, PREFIX_SIZE);
	path = extended->path ? join_path("", extended->path) : join_path(prefix, name);
	for (size_t length = strlen(path); length && path[length - 1] == '/'; length--)
		path[length - 1] = 0;
	return path;
}

static void add(struct members *members, struct member member)
{
	if (members->count == members->space) {
		members->space = members->space ? 2 * members->space : 64;
		members->items = realloc(members->items, members->space * sizeof *members->items);
		if (!members->items)
			exit(fail("out of memory"));
	}
	members->items[members->count++] = member;
}

static int read_body(int fd, uint64_t at, uint64_t size, struct extended *extended)
{
	char *text;

	if (size > LONGEST)
		return fail("archive: a header of more than %d bytes", LONGEST);
	text = allocate(size + 1);
	if (pread(fd, text, size, (off_t)at) != (ssize_t)size) {
		free(text);
		return fail("archive: ends too early");
	}
	text[size] = 0;
	read_extended(extended, text, size);
	free(text);
	return 0;
}

int members_read(struct members *members, int fd)
{
	static const unsigned char nothing[BLOCK];
	struct extended extended = { 0 };
	unsigned char header[BLOCK];
	ssize_t length;

	for (uint64_t at = 0; (length = pread(fd, header, BLOCK, (off_t)at)) == BLOCK;) {
		uint64_t size = number(header + SIZE, 12), space;
		char type = (char)header[TYPE];

		/* Anything after the end marker is ignored. */
		if (memcmp(header, nothing, BLOCK) == 0)
			break;
		if (type == 'x') {
			if (read_body(fd, at + BLOCK, size, &extended))
				return EXIT_OWN;
		} else if (type != 'g') {
			if (extended.has_size)
				size = extended.size;
			add(members, (struct member){
					     .path = path_of(header, &extended),
					     .type = type,
					     .bits = (mode_t)number(header + MODE, 8) & MEMBER_BITS,
					     .has_capabilities = extended.has_capabilities,
				     });
			forget_extended(&extended);
		}
		if (size > INT64_MAX - 2 * BLOCK - at)
			return fail("archive: not understood");
		space = (size + BLOCK - 1) / BLOCK * BLOCK;
		at += BLOCK + space;
	}
	forget_extended(&extended);
	return length < 0 ? fail("archive, descriptor %d: %s", fd, strerror(errno)) : 0;
}
