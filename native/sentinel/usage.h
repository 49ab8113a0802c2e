#ifndef USAGE_H
#define USAGE_H

#include <stdio.h>

/* Writes what the program takes, and returns `code`. */
int usage(FILE *out, int code);

#endif
