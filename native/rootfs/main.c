/*
 * Packs the files that belong to a container's memory, and unpacks them where the memory is restored.
 *
 *   rootfs save [--layer] [--gate] [--exclude PATH]...
 *   rootfs list --of PID [--exclude PATH]...
 *   rootfs apply [--directory] [--exclude PATH]... [--user ID|any]... [--group ID|any]... [--capabilities] [--devices]
 *
 * save   archives the directory open as 201 to 202 and lists it to 203. --layer: it is the upper directory of an
 *        overlay, so deletions are deletions of the image's files. The archive is a tar file, by GNU tar: owners, modes,
 *        times, hard links, holes, ACLs, extended attributes; no sockets. The list has the archived and deleted files.
 *        --gate: waits for a file `go` in the directory open as 205.
 * list   only lists, to 203, the upper directory of the overlay that is the root of the process PID, and marks files
 *        that its image has too.
 * apply  restores the root directory: 202 and 203 as save left them, 204, if open, a `list` of the upper directory as it
 *        is now, so that changes of an earlier memory are removed. Run it inside the container. It leaves mounts alone,
 *        and does nothing if the root is read-only.
 *        --directory: restores the directory open as 201.
 *        --user, --group, --capabilities, --devices: the rights that the container has itself: set-id programs of these
 *        owners, programs with capabilities, devices. Others lose these rights, with a line about each on standard
 *        error; directories keep their bits.
 *
 * tar reads and writes archives in a root directory of its own, see sandbox.c: no name and no link leads out of it.
 *
 * 200 is the directory with `criu/`, which has tar. Paths to exclude are relative to the root. Exit codes: 0; 1 if a
 * file changed while it was read; 3 if an earlier memory's change of the image's own files cannot be undone (the
 * container must be replaced); anything else is a failure, with a line on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rootfs.h"

static int usage(void)
{
	fputs("usage: rootfs save [--layer] [--gate] [--exclude PATH]...\n"
	      "       rootfs list --of PID [--exclude PATH]...\n"
	      "       rootfs apply [--directory] [--exclude PATH]... [--user ID|any]... [--group ID|any]...\n"
	      "                    [--capabilities] [--devices]\n",
	      stderr);
	return EXIT_OWN;
}

/* A tree takes one descriptor for each level. */
static void allow_depth(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * Starting usually takes as long as the work itself, and the application is stopped for that time. The deadline ends
 * this wait if the gate stays closed.
 */
static void wait_at_gate(void)
{
	/* Short waits first: the gate usually opens soon; a longer wait means that a process is blocked on a device. */
	static const struct timespec brief = { .tv_nsec = 100 * 1000 }, longer = { .tv_nsec = 1000 * 1000 };

	for (int waits = 0; faccessat(FD_GATE, "go", F_OK, 0) != 0; waits++)
		nanosleep(waits < 500 ? &brief : &longer, NULL);
}

/*
 * In the sandbox, because a directory can become a link at any moment: not every process that can write there is
 * stopped.
 */
static int archive(int names)
{
	return enter_sandbox(FD_DIRECTORY, false) ? EXIT_OWN : tar_create(names);
}

/* Lists the directory and writes the names for tar. */
static int gather(struct walk *walk, int names)
{
	return list_directory(walk) || list_write(&walk->list, FD_LIST) || tar_names(&walk->list, names) ? EXIT_OWN : 0;
}

/* Passes the names in a file: they may exceed a command line. */
static int save(struct walk *walk)
{
	int names = memfd_create("names", MFD_CLOEXEC);

	if (names < 0)
		return fail("names: %s", strerror(errno));
	if (gather(walk, names))
		return EXIT_OWN;
	if (lseek(names, 0, SEEK_SET))
		return fail("names: %s", strerror(errno));
	return archive(names);
}

/* Starts tar before the gate opens; it waits for names. Its start usually takes longer than its work. */
static int save_from_gate(struct walk *walk)
{
	int names[2], status;
	pid_t tar;

	if (pipe2(names, O_CLOEXEC) || (tar = fork()) < 0)
		return fail("tar: %s", strerror(errno));
	if (tar == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(names[1]);
		_exit(archive(names[0]));
	}
	close(names[0]);
	/* A failed tar has printed why, and waitpid() gets its exit code. */
	signal(SIGPIPE, SIG_IGN);
	wait_at_gate();
	if (gather(walk, names[1])) {
		kill(tar, SIGKILL);
		return EXIT_OWN;
	}
	close(names[1]);
	if (waitpid(tar, &status, 0) < 0)
		return fail("tar: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : fail("tar: signal %d", WTERMSIG(status));
}

static int list(const char *pid, const struct paths *excluded)
{
	struct image image = { 0 };
	struct walk walk = { .layer = true, .image = &image, .excluded = excluded };

	return image_open(&image, pid) || list_directory(&walk) || list_write(&walk.list, FD_LIST) ? EXIT_OWN : 0;
}

static int apply(bool directory, struct paths *excluded, const struct may *may)
{
	struct list wanted = { 0 }, present = { 0 };
	struct clear clear = { .kept = excluded };
	int root = directory ? FD_DIRECTORY : open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statvfs status;
	int code;

	if (root < 0 || (!directory && fstatvfs(root, &status)))
		return fail("/: %s", strerror(errno));
	/* The runtime fills such a layer at the start of each container. */
	if (!directory && (status.f_flag & ST_RDONLY))
		return 0;

	if (list_read(&wanted, FD_LIST))
		return EXIT_OWN;
	if (!directory && fcntl(FD_PRESENT, F_GETFD) >= 0 && list_read(&present, FD_PRESENT))
		return EXIT_OWN;
	/* A volume is archived without its mounts; in a root directory the mounts are not part of the layer. */
	if (!directory && paths_add_mounts(excluded))
		return EXIT_OWN;
	paths_sort(excluded);
	if (enter_sandbox(root, true))
		return EXIT_OWN;
	clear.root = open("/directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (clear.root < 0)
		return fail("/directory: %s", strerror(errno));
	code = directory ? clear_all_but(&clear, &wanted) : clear_for(&clear, &wanted, &present);
	return code ? code : bring(may, clear.root, excluded);
}

int main(int count, char **arguments)
{
	bool layer = false, directory = false, gate = false;
	struct paths excluded = { 0 };
	struct may may = { 0 };
	const char *verb, *pid = NULL;

	if (count < 2)
		return usage();
	verb = arguments[1];
	for (int i = 2; i < count; i++) {
		if (strcmp(arguments[i], "--layer") == 0)
			layer = true;
		else if (strcmp(arguments[i], "--gate") == 0)
			gate = true;
		else if (strcmp(arguments[i], "--directory") == 0)
			directory = true;
		else if (strcmp(arguments[i], "--of") == 0 && i + 1 < count)
			pid = arguments[++i];
		else if (strcmp(arguments[i], "--exclude") == 0 && i + 1 < count)
			paths_add(&excluded, arguments[++i]);
		else if (strcmp(arguments[i], "--capabilities") == 0)
			may.capabilities = true;
		else if (strcmp(arguments[i], "--devices") == 0)
			may.devices = true;
		else if (strcmp(arguments[i], "--user") == 0 && i + 1 < count && ids_add(&may.users, arguments[i + 1]))
			i++;
		else if (strcmp(arguments[i], "--group") == 0 && i + 1 < count && ids_add(&may.groups, arguments[i + 1]))
			i++;
		else
			return usage();
	}
	paths_sort(&excluded);
	umask(0);
	allow_depth();
	if (strcmp(verb, "save") == 0 && !directory && !pid) {
		struct walk walk = { .layer = layer, .excluded = &excluded };

		/* An application is stopped for this. Failing to raise the priority is acceptable. */
		setpriority(PRIO_PROCESS, 0, -20);
		return gate ? save_from_gate(&walk) : save(&walk);
	}
	if (strcmp(verb, "list") == 0 && !directory && !gate && pid)
		return list(pid, &excluded);
	if (strcmp(verb, "apply") == 0 && !layer && !gate && !pid)
		return apply(directory, &excluded, &may);
	return usage();
}
