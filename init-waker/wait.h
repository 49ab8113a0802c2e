#ifndef WAIT_H
#define WAIT_H

/* `waker wait`: returns 0 when woken, 128 + signal after a termination signal, EXIT_FAILED or EXIT_USAGE. */
int wait_main(int argc, char **argv);

#endif
