#ifndef IF_APP_H
#define IF_APP_H

/* `waker if-app`: becomes a command that is for the app, when there is one. Returns the exit code otherwise. */
int if_app_main(int argc, char **argv);

#endif
