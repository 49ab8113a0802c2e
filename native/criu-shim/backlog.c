/*
 * A frozen clone accepts no connection. A client that connects between a death and the thaw waits in the listener's
 * queue, and the kernel silently drops a SYN that finds the queue full. That client retries after a second, while
 * others wait for milliseconds. So a queue longer than a few becomes as long as the kernel allows (net.core.somaxconn).
 * A short one may be meant to keep clients from waiting, and stays as it was; the exception is CRIU's own listener, see
 * control.c.
 */
#include "control.h"

enum { FEW = 16, MANY = 65535 };

int listen(int fd, int backlog)
{
	return (int)result(raw(NR_listen, fd, backlog > FEW || control_is_door(fd) ? MANY : backlog, 0, 0, 0, 0));
}
