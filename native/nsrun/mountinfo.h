#pragma once

struct mount_line {
	int id, parent;
	char *root, *point; /* unescaped */
	unsigned long flags; /* MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC of this mount */
	char *type;
	char *options; /* of the file system */
};

struct mount_table {
	struct mount_line *lines; /* in the kernel's order: parents first, covered before covering */
	int count;
};

/*
 * Reads the mounts of this process. Nonzero: it has failed and printed why. Its memory is never freed: the process is
 * short.
 */
int read_mounts(struct mount_table *table);
