#ifndef USAGE_H
#define USAGE_H

#include <stdio.h>

/* Prints the usage and returns `code`. */
int usage(FILE *out, int code);

#endif
