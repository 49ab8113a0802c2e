#ifndef WAIT_H
#define WAIT_H

/* `waker wait`: 0 when woken, 128 + signal when told to stop, EXIT_FAILED or EXIT_USAGE. */
int wait_main(int argc, char **argv);

#endif
