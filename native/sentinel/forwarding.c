#include "forwarding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

/* Returns 0 or an errno. */
static int write_setting(const char *path, const char *value)
{
	int error, fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	error = write(fd, value, strlen(value)) < 0 ? errno : 0;
	close(fd);
	return error;
}

static int no_redirects(const char *path)
{
	return write_setting(path, "0");
}

/* A default route that a router has told the pod would end with this: a machine that forwards takes no word of routers by default. */
static int keep_learned_routes(const char *path)
{
	char value = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (read(fd, &value, 1) < 0)
		value = 0;
	close(fd);
	return value == '1' ? write_setting(path, "2") : 0;
}

/* Calls `change` for a setting of each interface and of `all`, which applies in addition. Returns 0 or an errno. */
static int each_interface(const char *parent, const char *setting, int (*change)(const char *path))
{
	DIR *directory = opendir(parent);
	struct dirent *entry;
	int error = 0;

	if (!directory)
		return errno;
	while (!error && (entry = readdir(directory))) {
		char path[320];

		snprintf(path, sizeof path, "%s/%s/%s", parent, entry->d_name, setting);
		if (entry->d_name[0] != '.')
			error = change(path);
		/* An interface may disappear at any time. */
		if (error == ENOENT)
			error = 0;
	}
	closedir(directory);
	return error;
}

int forwarding_send_no_redirects(void)
{
	return each_interface("/proc/sys/net/ipv4/conf", "send_redirects", no_redirects);
}

int forwarding_begin(bool both)
{
	int error = both ? each_interface("/proc/sys/net/ipv6/conf", "accept_ra", keep_learned_routes) : ENOENT;

	if (!error)
		error = write_setting("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	/* ENOENT: there is no IPv6 here. */
	if (error && error != ENOENT)
		log_failure("a dead pod may not pass packets of IPv6 on", error);
	return write_setting("/proc/sys/net/ipv4/ip_forward", "1");
}
