/*
 * A restored tree lives in a pid namespace of its own below the container's, and in a copy of the container's mounts.
 * Its /proc would still be that of the container's namespace: /proc/self would be wrong, and CRIU could not dump the
 * tree again. So just before the tree runs for the first time, this code mounts a /proc of the tree's namespace over
 * the old one. It repeats every mount on the old /proc that hides or protects a part of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nsrun.h"
#include "mountinfo.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
/* From <linux/mount.h>, which only recent C libraries have. */
enum { TREE_CLONE = 1, TREE_CLOEXEC = O_CLOEXEC, MOVE_F_EMPTY_PATH = 4 };

struct cover {
	const struct mount_line *mount;
	bool own; /* a part of the old /proc itself, to be repeated with the same part of the new one */
	int tree; /* else a copy of the mount */
};

/* Returns the last mount at the point, which is the visible one. */
static const struct mount_line *seen_at(const struct mount_table *table, const char *point)
{
	for (int i = table->count - 1; i >= 0; i--)
		if (strcmp(table->lines[i].point, point) == 0)
			return &table->lines[i];
	return NULL;
}

static bool is_within(const struct mount_table *table, const struct mount_line *mount, const struct mount_line *ancestor)
{
	for (int steps = 0; steps <= table->count; steps++) {
		const struct mount_line *parent = NULL;

		if (mount->parent == ancestor->id)
			return true;
		for (int i = 0; i < table->count && !parent; i++)
			if (table->lines[i].id == mount->parent && table->lines[i].id != mount->id)
				parent = &table->lines[i];
		if (!parent)
			return false;
		mount = parent;
	}
	return false;
}

/* Copies every mount on the old /proc; returns their number, or -1. */
static int take_covers(const struct mount_table *table, const struct mount_line *proc, struct cover *covers)
{
	int count = 0;

	for (int i = 0; i < table->count; i++) {
		const struct mount_line *mount = &table->lines[i];

		if (strncmp(mount->point, "/proc/", 6) != 0 || seen_at(table, mount->point) != mount ||
		    !is_within(table, mount, proc))
			continue;
		covers[count] = (struct cover){ .mount = mount, .own = strcmp(mount->type, "proc") == 0, .tree = -1 };
		if (!covers[count].own) {
			covers[count].tree = (int)syscall(SYS_open_tree, AT_FDCWD, mount->point, TREE_CLONE | TREE_CLOEXEC);
			if (covers[count].tree < 0) {
				fail("take %s along: %s", mount->point, strerror(errno));
				return -1;
			}
		}
		count++;
	}
	return count;
}

static int put_cover(const struct cover *cover)
{
	const char *point = cover->mount->point;

	if (!cover->own) {
		/* The new /proc lacks paths of the outer namespace's processes, so there is nothing to hide. */
		if (syscall(SYS_move_mount, cover->tree, "", AT_FDCWD, point, MOVE_F_EMPTY_PATH) && errno != ENOENT)
			return fail("cover %s: %s", point, strerror(errno));
		return 0;
	}
	if (mount(point, point, NULL, MS_BIND, NULL))
		return errno == ENOENT ? 0 : fail("cover %s: %s", point, strerror(errno));
	if (mount(NULL, point, NULL, MS_BIND | MS_REMOUNT | cover->mount->flags, NULL))
		return fail("cover %s: %s", point, strerror(errno));
	return 0;
}

/* Call it in the tree's pid namespace: a new /proc belongs to the caller's namespace. */
static int overlay_proc(const struct mount_line *proc, const struct cover *covers, int count)
{
	/* hidepid, gid and subset, if the container's has any; "rw" and "ro" are flags here. */
	char *options = strdup(proc->options), *more;

	if (!options)
		return fail("out of memory");
	more = options + strcspn(options, ",");
	if (*more)
		more++;
	/* In case it is shared: the container's own /proc must stay as it is. */
	if (mount(NULL, "/proc", NULL, MS_REC | MS_SLAVE, NULL))
		return fail("/proc: %s", strerror(errno));
	if (mount("proc", "/proc", "proc", proc->flags, more))
		return fail("mount /proc: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		int code = put_cover(&covers[i]);

		if (code)
			return code;
	}
	return 0;
}

static int is_our_own_copy(void)
{
	struct stat ours, container;

	if (stat("/proc/self/ns/mnt", &ours) || stat("/proc/1/ns/mnt", &container))
		return fail("mount namespaces: %s", strerror(errno));
	if (ours.st_ino == container.st_ino)
		return fail("the mount namespace is the container's own: restore with `clone`");
	return 0;
}

static int give_own_proc(const char *root)
{
	const struct mount_line *proc;
	struct mount_table table;
	struct cover *covers;
	char path[64];
	pid_t child;
	int count, space;

	if (is_our_own_copy() || read_mounts(&table))
		return EXIT_OWN;
	proc = seen_at(&table, "/proc");
	if (!proc)
		return fail("nothing is mounted at /proc");
	covers = calloc((size_t)table.count, sizeof *covers);
	if (!covers)
		return fail("out of memory");
	count = take_covers(&table, proc, covers);
	if (count < 0)
		return EXIT_OWN;
	snprintf(path, sizeof path, "/proc/%s/ns/pid", root);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWPID))
		return fail("%s: %s", path, strerror(errno));
	child = fork();
	if (child < 0)
		return fail("fork: %s", strerror(errno));
	if (child == 0)
		_exit(overlay_proc(proc, covers, count));
	return wait_for(child);
}

int action_script(void)
{
	const char *action = getenv("CRTOOLS_SCRIPT_ACTION"), *root = getenv("CRTOOLS_INIT_PID");
	int code;

	if (strcmp(action, "pre-resume") != 0)
		return 0;
	if (!root || atoi(root) <= 0)
		return fail("CRTOOLS_INIT_PID is not set");
	code = give_own_proc(root);
	/* CRIU only logs the failure of such a late script. A tree with a wrong /proc must not run. */
	if (code)
		kill(atoi(root), SIGKILL);
	return code;
}
