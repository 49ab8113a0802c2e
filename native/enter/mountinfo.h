#pragma once

struct mount_line {
	int id, parent;
	char *root, *point; /* unescaped */
	unsigned long flags; /* MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC as they are on this mount */
	char *type;
	char *options; /* of the file system */
};

struct mount_table {
	struct mount_line *lines; /* in the order of the kernel: parents first, covered before covering */
	int count;
};

/* The mounts that we see. Nonzero: it has failed and said why. What it allocates is never freed: the process is short. */
int read_mounts(struct mount_table *table);
