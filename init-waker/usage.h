#ifndef USAGE_H
#define USAGE_H

#include <stdio.h>

/* Writes how the program is called and returns `code`. */
int usage(FILE *out, int code);

#endif
