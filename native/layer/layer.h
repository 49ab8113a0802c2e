#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Our own failures; 1 and 2 are tar's. */
enum { EXIT_OWN = 125, EXIT_IRREVERSIBLE = 3 };

/* What is open, as agreed with whoever starts us. */
enum { FD_TOOLS = 200, FD_DIRECTORY = 201, FD_ARCHIVE = 202, FD_LIST = 203, FD_PRESENT = 204, FD_GATE = 205 };

__attribute__((format(printf, 1, 2))) int fail(const char *format, ...);
void *allocate(size_t size);
/* Directories in directories take room on the stack and descriptors: how many, an application decides. Says so. */
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
/* The mounts that we see, relative to the root directory; added, not sorted. */
int paths_add_mounts(struct paths *paths);

/* ---- list.c: what a directory holds, parents before what is in them ---- */

enum kind {
	KIND_DIRECTORY = 'd',
	KIND_OPAQUE = 'o', /* a directory that hides what the image has there */
	KIND_OTHER = 'f',
	KIND_WHITEOUT = 'w', /* nothing, where the image has something */
};

struct item {
	enum kind kind;
	bool in_image; /* what is below the layer has it too, as far as was asked for; only `list` asks */
	char *path;
};

struct list {
	struct item *items;
	size_t count, space;
};

/* ---- image.c: what a layer is the writable layer of ---- */

struct image {
	int *directories; /* open; the topmost first */
	size_t count;
};

/* That of the process with the given pid. */
int image_open(struct image *image, const char *pid);
bool image_has(const struct image *image, const char *path);

struct walk {
	const struct image *image; /* NULL: do not ask */
	bool layer; /* the upper directory of an overlay, rather than a plain one */
	const struct paths *excluded; /* sorted */
	struct list list;
};

/* Everything below FD_DIRECTORY on its file system, but sockets. */
int list_directory(struct walk *walk);
/* "<kind><i or -> <path>\0" each. */
int list_write(const struct list *list, int fd);
int list_read(struct list *list, int fd);

/* ---- clear.c ---- */

struct clear {
	int root; /* open directory that all paths are below of */
	const struct paths *kept; /* mount points and exclusions, sorted: not to be touched, nor anything below them */
};

/* The parent directory of a path, or -1 with errno; *name is its last part. */
int open_parent_of(int root, const char *path, const char **name);
/* Or below one that is. */
bool is_kept(const struct clear *clear, const char *path);
/* Takes away what must not be there, or not as it is, before the archive of `wanted` is extracted. */
int clear_for(const struct clear *clear, const struct list *wanted, const struct list *present);
/* As `list`, with everything that is below the root but not in the list taken away. */
int clear_all_but(const struct clear *clear, const struct list *wanted);

/* ---- sandbox.c ---- */

/* A root directory with nothing in it but the open directory, as /directory. Nothing of /proc can be had after it. */
int enter_sandbox(int directory, bool writable);

/* ---- members.c ---- */

enum { MEMBER_BITS = 07000 };

struct member {
	char *path;
	char type; /* of POSIX */
	mode_t bits;
	bool has_capabilities;
};

struct members {
	struct member *items;
	size_t count, space;
};

/* Of an archive that lies in a file. */
int members_read(struct members *members, int fd);

/* ---- bring.c: the only way of an archive into a container ---- */

struct ids {
	uint32_t *items;
	size_t count;
	bool any;
};

/* What whoever the archive is for could have made itself. */
struct may {
	struct ids users, groups; /* whose programs may be run as their owner, and as their group */
	bool capabilities, devices;
};

bool ids_add(struct ids *ids, const char *word);
bool may_all(const struct may *may);
/* What it leaves out it says on standard error. */
int bring(const struct may *may, int root, struct paths *excluded);

/* ---- tar.c: in the sandbox, but for the names; the others do not return when tar starts ---- */

/* Of what is to be archived: not what was deleted. */
int tar_names(const struct list *list, int fd);
/* Archives what it reads the names of; see tar_names(). */
int tar_create(int names);
int tar_extract(const struct paths *excluded, const struct may *may);
