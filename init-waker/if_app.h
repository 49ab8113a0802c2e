#ifndef IF_APP_H
#define IF_APP_H

/* `waker if-app`: executes a command if there is an app. Otherwise returns the exit code. */
int if_app_main(int argc, char **argv);

#endif
