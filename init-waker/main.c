/*
 * waker: keeps pods waiting at their gate, and holds their place. One static program with a subcommand for each task.
 */
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "if_app.h"
#include "install.h"
#include "usage.h"
#include "wait.h"

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "wait") == 0)
		return wait_main(argc - 1, argv + 1);
	if (strcmp(name, "hold") == 0)
		return hold_main(argc - 1, argv + 1);
	if (strcmp(name, "if-app") == 0)
		return if_app_main(argc - 1, argv + 1);
	if (strcmp(name, "install") == 0)
		return install_main(argc - 1, argv + 1);
	if (strcmp(name, "version") == 0 && argc == 2) {
		puts("waker " UNDERSTUDY_VERSION);
		return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0)
		return usage(stdout, 0);
	return usage(stderr, EXIT_USAGE);
}
