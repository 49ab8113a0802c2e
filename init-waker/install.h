#ifndef INSTALL_H
#define INSTALL_H

/* The name of the installed program. */
#define INSTALLED_NAME "waker"

/*
 * Creates `directory` if missing, accessible to the users of the pod's containers, and copies this program atomically
 * to `directory`/`name`, mode 0555. A running instance of an older copy keeps its own file. Returns 0, or -1 and errno.
 */
int install_self(const char *directory, const char *name);

/* `waker install DIR...`: returns 0, EXIT_FAILED or EXIT_USAGE. */
int install_main(int argc, char **argv);

#endif
