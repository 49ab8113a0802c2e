#ifndef FAIL_H
#define FAIL_H

/* The exit code of a failure of our own, as distinct from those of the program that we run. */
enum { EXIT_OWN = 125 };

/* Prints one line on standard error, with the name of this program in front. Returns EXIT_OWN; keeps errno. */
__attribute__((format(printf, 1, 2))) int fail(const char *format, ...);

/* Prints one line on standard error: what has failed, and why by errno. Returns EXIT_FAILED. */
int failed(const char *what);

#endif
