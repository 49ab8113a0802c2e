/*
 * A template's preStop command is for the app. An understudy without a restored memory has no app; there the command
 * would act for an app that does not exist, or wait for it.
 */
#include "if_app.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "usage.h"

enum { PATIENCE_S = 2 };

/*
 * True if the hold of this directory reports that it has no app. Without an answer the command runs, to omit nothing.
 */
static bool has_none(const char *directory)
{
	static const char question[] = "understudy/1 state\n", none[] = "understudy/1 holding ";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/hold.sock", directory);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[128] = "";
	bool answered;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	answered = length > 0 && (size_t)length < sizeof address.sun_path &&
		   connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
		   send(fd, question, sizeof question - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof question - 1) &&
		   recv(fd, reply, sizeof reply - 1, 0) > 0;
	close(fd);
	return answered && strncmp(reply, none, sizeof none - 1) == 0;
}

int if_app_main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	const char *directory = NULL;
	int option, error;

	while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		if (option != 'd')
			return usage(stderr, EXIT_USAGE);
		directory = optarg;
	}
	if (!directory || optind >= argc)
		return usage(stderr, EXIT_USAGE);
	if (has_none(directory))
		return 0;
	execvp(argv[optind], argv + optind);
	error = errno;
	log_failure("cannot run the command", error);
	/* The codes of a shell. */
	return error == ENOENT ? 127 : 126;
}
