#include "cgroup_join.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, DEPTH = 16 };

/* One line of /proc/PID/cgroup: `number:controllers:path`; empty controllers mean cgroup v2. */
struct membership {
	const char *controllers, *path;
};

static bool parse_membership(char *line, struct membership *membership)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return false;
	line[strcspn(line, "\n")] = '\0';
	*path = '\0';
	*membership = (struct membership){ .controllers = controllers + 1, .path = path + 1 };
	return path[1] == '/';
}

/* True if a comma-separated list contains all words of another one. */
static bool has_all(const char *list, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, ",");
		const char *at = list;

		while (*at && !(strcspn(at, ",") == length && memcmp(at, words, length) == 0)) {
			at += strcspn(at, ",");
			at += *at == ',';
		}
		if (!*at)
			return false;
		words += length;
		words += *words == ',';
	}
	return true;
}

/* mountinfo escapes a space as \040, for example. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text; text++)
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			*out++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
			text += 3;
		} else {
			*out++ = *text;
		}
	*out = '\0';
}

/* Returns the part of a cgroup's path below the mounted root, or NULL if it is not below. */
static const char *below(const char *root, const char *path)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

/*
 * Writes the directory of a cgroup into `directory`. False with errno: ENOENT if its hierarchy is not mounted at all,
 * EXDEV if only another part of it is mounted.
 */
static bool locate(const struct membership *membership, char *directory, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool v2 = !*membership->controllers, mounted = false, found = false;
	char *line = NULL;
	size_t room = 0;

	if (!mounts)
		return false;
	while (!found && getline(&line, &room, mounts) > 0) {
		char *separator = strstr(line, " - "), *root, *point, *rest = NULL, *type, *options;
		const char *relative;

		if (!separator)
			continue;
		*separator = '\0';
		strtok_r(line, " ", &rest); /* id */
		strtok_r(NULL, " ", &rest); /* parent */
		strtok_r(NULL, " ", &rest); /* device */
		root = strtok_r(NULL, " ", &rest);
		point = strtok_r(NULL, " ", &rest);
		type = strtok_r(separator + 3, " ", &rest);
		strtok_r(NULL, " ", &rest); /* source */
		options = strtok_r(NULL, " \n", &rest);
		if (!root || !point || !type || !options || strcmp(type, v2 ? "cgroup2" : "cgroup") != 0 ||
		    !has_all(options, membership->controllers))
			continue;
		mounted = true;
		unescape(root);
		unescape(point);
		relative = below(root, membership->path);
		found = relative && (size_t)snprintf(directory, size, "%s%s", point, relative) < size;
	}
	free(line);
	fclose(mounts);
	errno = mounted ? EXDEV : ENOENT;
	return found;
}

static bool write_file(const char *directory, const char *name, const char *text)
{
	char path[PATH_BYTES + 64];
	int fd, error;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	errno = error;
	return error == 0;
}

static ssize_t read_file(const char *directory, const char *name, char *text, size_t size)
{
	char path[PATH_BYTES + 64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* A new cgroup of v1's cpuset has no CPUs and no memory nodes; no process can join it until both are set. */
static void inherit_cpuset(const char *directory)
{
	static const char *const names[] = { "cpuset.cpus", "cpuset.mems" };
	char parent[PATH_BYTES], text[4096];
	char *slash;

	snprintf(parent, sizeof parent, "%s", directory);
	slash = strrchr(parent, '/');
	if (!slash)
		return;
	*slash = '\0';
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (read_file(directory, names[i], text, sizeof text) >= 0 && text[strspn(text, " \n")] == '\0' &&
		    read_file(parent, names[i], text, sizeof text) > 0)
			write_file(directory, names[i], text);
}

/*
 * A new cgroup of v1's cpu controller has no realtime budget. A tenth of each second is more than the sentinel ever
 * needs.
 */
static void allow_realtime(const char *directory)
{
	write_file(directory, "cpu.rt_runtime_us", "100000");
}

static int leave_group(const char *path, const struct stat *entry, int type, struct FTW *place)
{
	(void)entry;
	(void)place;
	return type != FTW_DP || rmdir(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* An agent that was killed during the test of its node has left the cgroups of test containers in ours. */
static bool leave(const char *directory)
{
	/* Whatever stops the walk, such as a cgroup that goes meanwhile, the last removal tells whether all of it is gone. */
	nftw(directory, leave_group, DEPTH, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return rmdir(directory) == 0 || errno == ENOENT;
}

/* With `name` NULL it joins the process's own cgroup. */
static bool act(struct membership *membership, const char *name, bool leaves, char *what, size_t size)
{
	char beside[PATH_BYTES];

	if (name) {
		const char *slash = strrchr(membership->path, '/');

		snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - membership->path), membership->path, name);
		membership->path = beside;
	}
	snprintf(what, size, "%s:%s", *membership->controllers ? membership->controllers : "v2", membership->path);
	char directory[PATH_BYTES];

	if (!locate(membership, directory, sizeof directory))
		return errno == ENOENT;
	snprintf(what, size, "%s", directory);
	if (leaves)
		return leave(directory);
	if (name) {
		if (mkdir(directory, 0755) != 0 && errno != EEXIST)
			return false;
		inherit_cpuset(directory);
		allow_realtime(directory);
	}
	return write_file(directory, "cgroup.procs", "0");
}

static bool act_all(pid_t pid, const char *name, bool leaves, char *what, size_t size)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *memberships;
	bool joined = true;
	int error = 0;

	snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	snprintf(what, size, "%s", path);
	memberships = fopen(path, "re");
	if (!memberships)
		return false;
	while (joined && getline(&line, &room, memberships) > 0) {
		struct membership membership;

		if (!parse_membership(line, &membership))
			continue;
		joined = act(&membership, name, leaves, what, size);
		error = errno;
	}
	free(line);
	fclose(memberships);
	errno = error;
	return joined;
}

bool cgroup_join(pid_t pid, char *what, size_t size)
{
	return act_all(pid, NULL, false, what, size);
}

bool cgroup_settle(const char *name, char *what, size_t size)
{
	return act_all(1, name, false, what, size);
}

bool cgroup_remove(const char *name, char *what, size_t size)
{
	return act_all(1, name, true, what, size);
}
