#ifndef INSTALL_H
#define INSTALL_H

/* What the program is called where it is installed. */
#define INSTALLED_NAME "waker"

/*
 * Makes `directory` if need be, for whoever the containers of the pod run as, and copies this program to `directory`/`name`, mode 0555, at once and as a whole: at no time is there a part of it
 * under that name, and a program already running from there keeps its own file. Returns 0, or -1 and errno.
 */
int install_self(const char *directory, const char *name);

/* `waker install DIR...`: 0, EXIT_FAILED or EXIT_USAGE. */
int install_main(int argc, char **argv);

#endif
