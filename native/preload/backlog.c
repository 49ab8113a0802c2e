/*
 * What lies frozen accepts nobody: who connects between a death and the thaw waits in the listener's queue, and the kernel
 * drops without a word whoever finds it full. That one asks again after a second, where everybody else waits for milliseconds.
 * So a queue that was made for more than a few is as long as the kernel allows (net.core.somaxconn). A short one may mean
 * that nobody is to wait, and stays as it was; but for the one at which CRIU waits for its own code, see control.c.
 */
#include "control.h"

enum { FEW = 16, MANY = 65535 };

int listen(int fd, int backlog)
{
	return (int)result(raw(NR_listen, fd, backlog > FEW || control_is_door(fd) ? MANY : backlog, 0, 0, 0, 0));
}
