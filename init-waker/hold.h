#ifndef HOLD_H
#define HOLD_H

/*
 * `waker hold`: returns the app's exit code, or 128 + the signal that ended it; without an app 128 + the signal that
 * ended hold; the code of an `end` order; EXIT_FAILED or EXIT_USAGE.
 */
int hold_main(int argc, char **argv);

#endif
