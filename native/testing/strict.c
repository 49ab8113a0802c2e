/*
 * Makes the container that it runs in as strict as a runtime makes its own:
 *
 *   strict root    the root file system read-only
 *   strict proc    parts of /proc hidden, by a file and by a directory, and a part read-only
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

static int mount_or_say(const char *source, const char *target, const char *type, unsigned long flags)
{
	if (mount(source, target, type, flags, type ? "size=0k" : NULL) == 0)
		return 0;
	fprintf(stderr, "strict: %s: %s\n", target, strerror(errno));
	return 1;
}

int main(int count, char **arguments)
{
	const unsigned long hard = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (count == 2 && strcmp(arguments[1], "root") == 0)
		return mount_or_say(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY);
	if (count == 2 && strcmp(arguments[1], "proc") == 0)
		return mount_or_say("/dev/null", "/proc/timer_list", NULL, MS_BIND) ||
		       mount_or_say("tmpfs", "/proc/irq", "tmpfs", MS_RDONLY) ||
		       mount_or_say("/proc/sys", "/proc/sys", NULL, MS_BIND) ||
		       mount_or_say(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | hard);
	return 2;
}
