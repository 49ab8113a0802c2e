/* What CRIU will ask of TCP sockets is asked before it does. */
#pragma once

#include "work.h"

/* Before anybody is stopped: what it needs. Without it CRIU asks by itself, as it does when any of this fails. */
void sockets_prepare(void);

/* Everybody stands. */
void sockets_ask(void);

/* How many of CRIU's questions were answered so. */
int sockets_were_asked(void);
