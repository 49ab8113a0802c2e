/* Leaves a file when it is run or loaded: no program or library of a container may run. */
#include "../criu-shim/calls.h"

enum { O_MAKE = 01 | 0100 };

static void __attribute__((constructor)) leave_file(void)
{
	raw(NR_openat, CWD, (long)"/ran", O_MAKE, 0600, 0, 0);
}

int main(void)
{
	return 0;
}
