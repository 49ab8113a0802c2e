#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "descriptors.h"
#include "fail.h"

/* Beside EXIT_OWN; 1 and 2 are tar's. */
enum { EXIT_IRREVERSIBLE = 3 };

void *allocate(size_t size);
/*
 * True if the tree is deeper than the stack and the descriptors allow: an application decides its depth. Prints an
 * error.
 */
bool is_too_deep(const char *path);
char *join_path(const char *directory, const char *name);

/* ---- paths.c: sets of paths, relative to a root, without a leading slash ---- */

struct paths {
	char **items;
	size_t count, space;
};

void paths_add(struct paths *paths, const char *path);
void paths_sort(struct paths *paths);
bool paths_have(const struct paths *sorted, const char *path);
/* Adds the mount points that we see, relative to the root directory, unsorted. */
int paths_add_mounts(struct paths *paths);

/* ---- list.c: the contents of a directory, parents before their contents ---- */

enum kind {
	KIND_DIRECTORY = 'd',
	KIND_OPAQUE = 'o', /* a directory that hides the image's contents */
	KIND_OTHER = 'f',
	KIND_WHITEOUT = 'w', /* a deletion of the image's file */
};

struct item {
	enum kind kind;
	bool in_image; /* the image below has it too; set only by `list` */
	char *path;
};

struct list {
	struct item *items;
	size_t count, space;
};

/* ---- image.c: the image below a writable layer ---- */

struct image {
	int *directories; /* open; the topmost first */
	size_t count;
};

/* Opens the image of the process with the given pid. */
int image_open(struct image *image, const char *pid);
bool image_has(const struct image *image, const char *path);

struct walk {
	const struct image *image; /* NULL: do not check */
	bool layer; /* the upper directory of an overlay, rather than a plain one */
	const struct paths *excluded; /* sorted */
	struct list list;
};

/* Lists everything below FD_DIRECTORY on its file system, but sockets. */
int list_directory(struct walk *walk);
/* Each item is "<kind><i or -> <path>\0". */
int list_write(const struct list *list, int fd);
int list_read(struct list *list, int fd);

/* ---- clear.c ---- */

struct clear {
	int root; /* open directory; all paths are below it */
	const struct paths *kept; /* mount points and exclusions, sorted: left untouched, with everything below them */
};

/* Returns the parent directory of a path, or -1 with errno; *name is the last component. */
int open_parent_of(int root, const char *path, const char **name);
/* True for a kept path and for any path below one. */
bool is_kept(const struct clear *clear, const char *path);
/* Removes files that must not exist, or that have a wrong kind, before the archive of `wanted` is extracted. */
int clear_for(const struct clear *clear, const struct list *wanted, const struct list *present);
/* Does the same for everything below the root, and also removes every file that is not in `wanted`. */
int clear_all_but(const struct clear *clear, const struct list *wanted);

/* ---- sandbox.c ---- */

/* Enters a root directory that has only the open directory, as /directory. /proc is unavailable after it. */
int enter_sandbox(int directory, bool writable);

/* ---- members.c ---- */

enum { MEMBER_BITS = 07000 };

struct member {
	char *path;
	char type; /* as in POSIX */
	mode_t bits;
	bool has_capabilities;
};

struct members {
	struct member *items;
	size_t count, space;
};

/* Reads the members of an archive in a file. */
int members_read(struct members *members, int fd);

/* ---- bring.c: the only way of an archive into a container ---- */

struct ids {
	uint32_t *items;
	size_t count;
	bool any;
};

/* The rights of the container that gets the archive. */
struct may {
	struct ids users, groups; /* owners and groups whose set-id programs are allowed */
	bool capabilities, devices;
};

bool ids_add(struct ids *ids, const char *word);
bool may_all(const struct may *may);
/* Extracts the archive; prints the rights that it leaves out on standard error. */
int bring(const struct may *may, int root, struct paths *excluded);

/* ---- tar.c: inside the sandbox, but for tar_names(); the others do not return if tar starts ---- */

/* Writes the names of the files to archive, without deletions. */
int tar_names(const struct list *list, int fd);
/* Archives the files whose names it reads; see tar_names(). */
int tar_create(int names);
int tar_extract(const struct paths *excluded, const struct may *may);
