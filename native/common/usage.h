#ifndef USAGE_H
#define USAGE_H

#include <stdio.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Prints the program's usage, which each program defines itself, and returns `code`. */
int usage(FILE *out, int code);

#endif
